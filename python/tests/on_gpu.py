"""Kernels of `examples` and `stdlib` on tensors of PyTorch, compared with PyTorch: run it where PyTorch and a GPU are.

    PYTHONPATH=python python python/tests/on_gpu.py [--device cuda|cpu]

The last line counts the cases, and the exit code is 0 if all passed.
"""

import argparse
import math
import pathlib
import sys

import torch
import torch.nn.functional as F

import tk

ROOT = pathlib.Path(__file__).resolve().parents[2]
parser = argparse.ArgumentParser()
parser.add_argument("--device", default="cuda")
device = parser.parse_args().device
torch.manual_seed(0)
torch.backends.cuda.matmul.allow_tf32 = False

#: Smaller shapes for the interpreter.
SMALL = device == "cpu"
N = 40 if SMALL else 1000
failed = passed = 0


def randn(*shape, dtype=torch.float16):
    return torch.randn(*shape, device=device, dtype=torch.float32).to(dtype)


def like(x, *shape, dtype=None):
    return torch.zeros(shape or x.shape, device=device, dtype=dtype or x.dtype)


def ints(values):
    return torch.tensor(values, device=device, dtype=torch.int32)


def double(x):
    return x.double()


def case(file, kernel, args, wanted, atol=4e-3, **given):
    """Launches the kernel; `wanted` gives pairs of a tensor that it wrote and what PyTorch says."""
    global failed, passed
    name = f"{file}::{kernel}"
    try:
        module = tk.load(ROOT / f"{file}.tk")
        module[kernel](*args, **given)
        worst = 0.0
        for got, want in wanted():
            scale = want.double().abs().max().item() if want.numel() else 1.0
            difference = (got.double() - want.double()).abs().max().item() if want.numel() else 0.0
            worst = max(worst, difference / max(scale, 1.0))
        ok = worst <= atol
    except Exception as error:  # a case that cannot run has failed
        ok, worst = False, f"{type(error).__name__}: {error}"
    passed, failed = passed + ok, failed + (not ok)
    print(f"{'ok  ' if ok else 'FAIL'} {name:48} {worst}")


x, y = randn(N, 300), like(randn(N, 300))
case("examples/softmax", "softmax", (x, y), lambda: [(y, torch.softmax(x.double(), -1))])
z = like(x)
case("examples/softmax_long", "softmax_long", (x, z), lambda: [(z, torch.softmax(x.double(), -1))])
w, b, n1 = randn(300), randn(300), like(x)
case("examples/layer_norm", "layer_norm", (x, w, b, n1), lambda: [(n1, F.layer_norm(x.double(), (300,), w.double(), b.double()))])
v, g = randn(N * 7), like(randn(N * 7))
case("examples/gelu", "gelu", (v, g), lambda: [(g, F.gelu(v.double()))])
s = like(v)
case("examples/add", "add", (v, g, s, v.numel()), lambda: [(s, v + g)])
d = like(v)
case("examples/dropout", "dropout", (v, d, 0.0, 7), lambda: [(d, v)])
d2 = like(v)
case("examples/dropout", "dropout_backward", (v, d2, 0.0, 7), lambda: [(d2, v)])
h, counts = torch.randint(0, 200, (N * 5,), device=device, dtype=torch.int32), like(x, 256, dtype=torch.int32)
case("examples/histogram", "histogram_of", (h, counts), lambda: [(counts, torch.bincount(h, minlength=256))], atol=0)
r, rs = torch.randint(-9, 9, (N * 5,), device=device, dtype=torch.int32), like(x, N * 5, dtype=torch.int32)
if not SMALL:  # its programs wait for each other
    case("examples/look_back", "running_sum", (r, rs), lambda: [(rs, r.cumsum(0))], atol=0)
M, K, P = (48, 40, 56) if SMALL else (500, 264, 392)
a, bm, c = randn(M, K), randn(K, P), torch.zeros(M, P, device=device, dtype=torch.float16)
product = a.double() @ bm.double()
for file, kernel, args in [
    ("examples/matmul", "matmul", (a, bm, None)),
    ("examples/grouped", "matmul_grouped", (a, bm)),
    ("examples/persistent", "matmul_persistent", (a, bm)),
    ("stdlib/nn/matmul", "matmul", (a, bm, None)),
]:
    c = torch.zeros(M, P, device=device, dtype=torch.float16)
    case(file, kernel, (*args, c), lambda: [(c, product)])
c = torch.zeros(M, P, device=device, dtype=torch.float16)
case("examples/matmul_ptr", "matmul_ptr", (a, bm, c, M, P, K, K, 1, P, 1, P, 1), lambda: [(c, product)])
at = torch.randn(K, M, device=device).half().T
c = torch.zeros(M, P, device=device, dtype=torch.float16)
case("stdlib/nn/matmul", "matmul", (at, bm, None, c), lambda: [(c, at.double() @ bm.double())])
bias = randn(P)
c1 = torch.zeros(M, P, device=device, dtype=torch.bfloat16)
case("stdlib/nn/matmul", "matmul", (a.bfloat16(), bm.bfloat16(), bias, c1), lambda: [(c1, a.bfloat16().double() @ bm.bfloat16().double() + bias.double())])
ba, bb = randn(3, M, K), randn(3, K, P)
c2 = torch.zeros(3, M, P, device=device, dtype=torch.float16)
case("stdlib/nn/batched", "batched_matmul", (ba, bb, None, c2), lambda: [(c2, ba.double() @ bb.double())])
up = randn(K, P)
c3 = torch.zeros(M, P, device=device, dtype=torch.float32)
small = a / 8
case("stdlib/nn/gated", "gated_matmul", (small, bm, up, c3), lambda: [(c3, F.silu(small.double() @ bm.double()) * (small.double() @ up.double()))])
offsets, gb = ints([0, 20, 20, M]), randn(3, K, P)
c4 = torch.zeros(M, P, device=device, dtype=torch.float16)
case("stdlib/nn/grouped", "grouped_matmul", (a, gb, offsets, None, c4), lambda: [(c4, torch.cat([a[:20].double() @ gb[0].double(), a[20:].double() @ gb[2].double()]))])
lw, res = randn(P, K), randn(M, P)
c5 = torch.zeros(M, P, device=device, dtype=torch.float16)
case("stdlib/nn/linear", "linear", (a, lw, bias, res, c5), lambda: [(c5, F.linear(a.double(), lw.double(), bias.double()) + res.double())])
c6 = torch.zeros(M, P, device=device, dtype=torch.float16)
case("stdlib/nn/scaled", "scaled_matmul", (a, bm, None, c6, 0.25), lambda: [(c6, product / 4)])
c7 = torch.zeros(M, P, device=device, dtype=torch.float16)
case("stdlib/nn/scaled", "residual_matmul", (a, bm, None, res, c7, 0.5), lambda: [(c7, product / 2 + res.double())])
n2 = like(x)
case("stdlib/nn/norm", "layer_norm", (x, w, b, n2), lambda: [(n2, F.layer_norm(x.double(), (300,), w.double(), b.double()))])
n3 = like(x)
case("stdlib/nn/norm", "rms_norm", (x, w, n3, 1e-6), lambda: [(n3, F.rms_norm(x.double(), (300,), w.double(), 1e-6))])
s1 = like(x)
case("stdlib/nn/softmax", "softmax", (x, s1), lambda: [(s1, torch.softmax(x.double(), -1))])
s2 = like(x)
case("stdlib/nn/softmax", "log_softmax", (x, s2), lambda: [(s2, torch.log_softmax(x.double(), -1))])
for axis in (0, 1):
    total, mean, best = (like(x, x.shape[1 - axis], dtype=t) for t in (torch.float32, torch.float32, torch.int32))
    case("stdlib/nn/reduce", "reduce_sum", (x, total), lambda: [(total, x.double().sum(axis))], AXIS=axis)
    case("stdlib/nn/reduce", "reduce_mean", (x, mean), lambda: [(mean, x.double().mean(axis))], AXIS=axis)
    unique = torch.randn(x.shape, device=device)
    case("stdlib/nn/reduce", "reduce_argmax", (unique, best), lambda: [(best, unique.argmax(axis))], atol=0, AXIS=axis)
targets = torch.randint(0, 300, (N,), device=device)
targets[3] = -100
loss = like(x, N, dtype=torch.float32)
case("stdlib/nn/cross_entropy", "cross_entropy", (x, targets, loss), lambda: [(loss, F.cross_entropy(x.double(), targets, reduction="none"))])
tokens, places = torch.randint(0, 50, (N,), device=device, dtype=torch.int32), torch.arange(N, device=device, dtype=torch.int32)
table, place_table, e = randn(50, 96), randn(N, 96), torch.zeros(N, 96, device=device, dtype=torch.float32)
case("stdlib/nn/embedding", "embed", (tokens, places, table, place_table, e), lambda: [(e, table.double()[tokens.long()] + place_table.double()[places.long()])])
t = torch.zeros(N, 96, device=device, dtype=torch.float16)
case("stdlib/nn/embedding", "take_rows", (table, tokens, t), lambda: [(t, table[tokens.long()])], atol=0)
cv = torch.zeros(50, 96, device=device, dtype=torch.bfloat16)
case("stdlib/nn/embedding", "convert", (table, cv), lambda: [(cv, table.bfloat16())], atol=0)
H, G, D, L = (2, 1, 32, 20) if SMALL else (8, 2, 64, 333)
q, kk, vv = randn(L, H, D), randn(L, G, D), randn(L, G, D)
o, lse = like(q), like(q, H, L, dtype=torch.float32)


def attention(q, k, v):
    """`[tokens, heads, D]`, causal."""
    q, k, v = (t.double().transpose(0, 1) for t in (q, k, v))
    k, v = (t.repeat_interleave(q.shape[0] // t.shape[0], 0) for t in (k, v))
    return F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(0, 1)


starts = ints([0, L])
case("examples/attention", "flash_fwd", (q, kk, vv, o, lse, starts, starts, L, 1 / math.sqrt(D)), lambda: [(o, attention(q, kk, vv))])
cache_k, cache_v = (t.transpose(0, 1).unsqueeze(0).contiguous() for t in (kk, vv))
o2 = like(q)
case("stdlib/nn/attention", "attention", (q, cache_k, cache_v, o2, starts, ints([L]), L, 1 / math.sqrt(D)), lambda: [(o2, attention(q, kk, vv))])
to_k, to_v = torch.zeros_like(cache_k), torch.zeros_like(cache_v)
for size, causal in ((64, True), (128, False), (80, True)):
    sq, sk, sv = (randn(2, L, heads, size).transpose(1, 2) for heads in (4, 2, 2))
    so = torch.zeros_like(sq)
    wanted = F.scaled_dot_product_attention(sq.double(), sk.double(), sv.double(), is_causal=causal, enable_gqa=True)
    case("stdlib/nn/attention", "scaled_dot_product_attention", (sq, sk, sv, so, 1 / math.sqrt(size)), lambda: [(so, wanted)], CAUSAL=causal)
case("stdlib/nn/attention", "remember", (kk, vv, to_k, to_v, starts, ints([L]), L), lambda: [(to_k, cache_k), (to_v, cache_v)], atol=0)
seg = torch.randint(-5, 5, (N * 3,), device=device, dtype=torch.int32)
begin = (torch.rand(N * 3, device=device) < 0.1).int()
begin[0] = 1
sums = torch.zeros_like(seg)


def segmented():
    running, group = seg.cumsum(0), begin.cumsum(0) - 1
    first = begin.nonzero().flatten()
    return running - (running[first] - seg[first])[group]


if SMALL or seg.numel() <= 4096:
    case("examples/segmented_scan", "segmented_scan", (seg, begin, sums), lambda: [(sums, segmented())], atol=0)
logits = torch.randn(4, 500, device=device)
settings, seed = torch.zeros(3, device=device), torch.zeros(1, device=device, dtype=torch.uint64)
lengths, chosen = ints([1, 2, 3, 4]), like(x, 4, dtype=torch.int32)
history = like(x, 4, 8, dtype=torch.int32)
case("stdlib/nn/sampling", "sample", (logits, settings, seed, lengths, chosen, history), lambda: [(chosen, logits.argmax(1)), (lengths, torch.arange(2, 6))] if SMALL else [(chosen, logits.argmax(1))], atol=0)

print(f"{passed} passed, {failed} failed")
sys.exit(failed > 0)
