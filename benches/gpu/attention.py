"""Attention of `std::nn` beside PyTorch's on a GPU: forward, backward, windows, soft caps, sequences of any lengths, decoding.

    PYTHONPATH=<site with the wheel> python3 benches/gpu/attention.py [--only NAME] [--random N] [--seed S] [--out FILE]

Each case is compared with PyTorch first (with float64 where it has one head left), then both are recorded in CUDA graphs and
measured in turns, in random order: bursts of 3 ms after 4 ms without work, of which the median counts. The last table has the
ratio of the times, PyTorch's over ours, for each group: its worst, its fifth percentile and its median.
"""

import argparse
import json
import math
import random
import statistics
import time

import torch
import torch.nn.functional as F
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

import tk

ATEN = torch.ops.aten
#: Tokens of a batch, and numbers in the heads of a token, for the cases with a table.
TOKENS, WIDTH = 16384, 2048
flex = torch.compile(flex_attention, dynamic=False)
attention, backward, decode = (
    tk.load(f"std::nn::{name}") for name in ("attention", "attention_backward", "decode")
)
#: Kernels whose graphs are measured must stay loaded.
kept = []


def recorded(work):
    """A graph that does `work`, which has run before."""
    kept.append(work)
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            work()
    torch.cuda.current_stream().wait_stream(stream)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        work()
    return graph


def once(graph, count=1):
    """Microseconds of a replay."""
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda.synchronize()
    begin.record()
    for _ in range(count):
        graph.replay()
    end.record()
    torch.cuda.synchronize()
    return begin.elapsed_time(end) * 1e3 / count


def measured(works, rounds=10):
    """The median time of each, in microseconds."""
    graphs = [recorded(work) for work in works]
    counts = [max(1, int(3e3 / (once(g), once(g))[1])) for g in graphs]
    times = [[] for _ in graphs]
    for _ in range(rounds):
        for n in random.sample(range(len(graphs)), len(graphs)):
            time.sleep(4e-3)
            times[n].append(once(graphs[n], counts[n]))
    kept.clear()
    return [statistics.median(t) for t in times]


def heads(batch, length, count, size, dtype):
    """Random elements, [batch, heads, length, size], with the heads of a token together."""
    shape = (batch, length, count, size)
    return torch.randn(shape, device="cuda", dtype=torch.float32).to(dtype).transpose(1, 2)


def off(ours, theirs):
    """The root of the mean square of a difference, relative to that of `theirs`."""
    ours, theirs = ours.double(), theirs.double()
    return ((ours - theirs).square().mean() / theirs.square().mean().clamp_min(1e-30)).sqrt().item()


def forward(size, length, causal, dtype):
    count, batch, scale = WIDTH // size, max(1, TOKENS // length), size**-0.5
    q, k, v = (heads(batch, length, count, size, dtype) for _ in range(3))
    out, lse = torch.empty_like(q), torch.empty(batch, count, length, device="cuda")
    kernel = attention["scaled_dot_product_attention"]

    def ours():
        kernel(q, k, v, out, scale, lse, CAUSAL=causal)

    def theirs():
        return ATEN._scaled_dot_product_cudnn_attention(
            q, k, v, None, True, 0.0, causal, False, scale=scale
        )

    ours()
    return ours, theirs, off(out, theirs()[0])


def gradients(size, length, causal, dtype, fixed=False):
    count, batch, scale = WIDTH // size, max(1, TOKENS // length), size**-0.5
    q, k, v, g = (heads(batch, length, count, size, dtype) for _ in range(4))
    out, lse, cum_q, cum_k, max_q, max_k, seed, offset, _ = ATEN._scaled_dot_product_cudnn_attention(
        q, k, v, None, True, 0.0, causal, False, scale=scale
    )
    sums_of_rows = lse.reshape(batch, count, length).float().contiguous()
    dq, dk, dv = (torch.empty_like(x) for x in (q, k, v))
    rows = torch.empty(batch, count, 2, length, device="cuda")
    sums = None if fixed else torch.empty(batch, count, length, size, device="cuda")

    def ours():
        backward["attention_backward_rows"](out, g, sums_of_rows, rows, scale, sums)
        backward["attention_backward"](g, q, k, v, rows, dk, dv, scale, sums, CAUSAL=causal)
        if fixed:
            backward["attention_backward_query"](g, q, k, v, rows, dq, scale, CAUSAL=causal)
        else:
            backward["attention_backward_sums"](sums, dq, scale)

    def theirs():
        return ATEN._scaled_dot_product_cudnn_attention_backward(
            g, q, k, v, out, lse, seed, offset, None, cum_q, cum_k, max_q, max_k, 0.0, causal,
            scale=scale,
        )

    ours()
    return ours, theirs, max(off(x, y) for x, y in zip((dq, dk, dv), theirs()))


def window(length, keys, dtype=torch.bfloat16):
    q, k, v = (heads(TOKENS // length, length, 16, 128, dtype) for _ in range(3))
    out, scale = torch.empty_like(q), 128**-0.5
    mask = create_block_mask(
        lambda b, h, i, j: (i >= j) & (i - j < keys), None, None, length, length
    )

    def ours():
        attention["scaled_dot_product_attention"](q, k, v, out, scale, WINDOW=keys)

    def theirs():
        return flex(q, k, v, block_mask=mask, scale=scale)

    ours()
    return ours, theirs, off(out, theirs())


def ragged(seed, dtype=torch.bfloat16):
    """24 sequences of 1 to 8192 tokens."""
    draw, count, size = random.Random(seed), 16, 128
    lengths = [int(2 ** draw.uniform(0, 13)) for _ in range(24)]
    starts = torch.tensor([0, *lengths], device="cuda").cumsum(0).int()
    total, longest = sum(lengths), max(lengths)
    q, k, v = (torch.randn(total, count, size, device="cuda").to(dtype) for _ in range(3))
    out, scale = torch.empty_like(q), size**-0.5
    padded = -(-total // 128) * 128
    of = torch.full((padded,), -1, device="cuda", dtype=torch.int32)
    for n, (a, b) in enumerate(zip(starts.tolist(), starts.tolist()[1:])):
        of[a:b] = n
    mask = create_block_mask(
        lambda b, h, i, j: (of[i] == of[j]) & (i >= j), None, None, padded, padded
    )
    whole = [F.pad(x.transpose(0, 1)[None], (0, 0, 0, padded - total)).contiguous() for x in (q, k, v)]

    def ours():
        attention["varlen_attn"](q, k, v, out, starts, starts, longest, scale)

    def theirs():
        return flex(*whole, block_mask=mask, scale=scale)

    ours()
    return ours, theirs, off(out, theirs()[0].transpose(0, 1)[:total])


def cached(sequences, keys, group=8, of_keys=8, size=128, dtype=torch.bfloat16):
    """One new token, keys in pages of 64; PyTorch has them in one piece."""
    count, scale = group * of_keys, size**-0.5
    k, v = (torch.randn(sequences, keys, of_keys, size, device="cuda").to(dtype) for _ in range(2))
    q = torch.randn(sequences, 1, count, size, device="cuda").to(dtype)
    out = torch.empty_like(q)
    table = torch.arange(sequences * keys // 64, device="cuda").int().view(sequences, keys // 64)
    lengths = torch.full((sequences,), keys, device="cuda", dtype=torch.int32)
    pages = [x.view(-1, 64, of_keys, size) for x in (k, v)]

    def ours():
        decode["decode_attention"](q, *pages, out, lengths, keys, scale, table)

    def theirs():
        return F.scaled_dot_product_attention(
            *(x.transpose(1, 2) for x in (q, k, v)), scale=scale, enable_gqa=True
        )

    ours()
    return ours, theirs, off(out, theirs().transpose(1, 2))


def table():
    """The cases of docs/performance.md, by group."""
    for size in (64, 128, 256):
        for causal in (False, True):
            for length in (512, 1024, 2048, 4096, 8192, 16384):
                yield "forward", (forward, size, length, causal, torch.float16)
    for name, fixed in (("backward", False), ("backward, fixed order", True)):
        for size in (64, 128):
            for causal in (False, True):
                for length in (1024, 2048, 4096, 8192, 16384):
                    yield name, (gradients, size, length, causal, torch.bfloat16, fixed)
    for length in (2048, 8192, 16384):
        yield "window of 1024", (window, length, 1024)
    for seed in range(3):
        yield "sequences of any lengths", (ragged, seed)
    for sequences, keys in ((1, 1024), (1, 16384), (16, 4096), (64, 8192)):
        yield "decoding", (cached, sequences, keys)


def drawn(count, seed):
    """Lengths and sizes that no table has."""
    draw = random.Random(seed)
    for _ in range(count):
        size = draw.choice([64, 128])
        length = int(2 ** draw.uniform(9, 13.5)) // 8 * 8
        causal, dtype = draw.random() < 0.5, draw.choice([torch.float16, torch.bfloat16])
        kind = draw.choice(["forward", "backward"])
        yield f"{kind}, drawn", (forward if kind == "forward" else gradients, size, length, causal, dtype)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="groups whose name contains this")
    parser.add_argument("--random", type=int, default=0, help="this many random shapes instead of the table")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", help="a file for the results, as JSON")
    given = parser.parse_args()
    torch.manual_seed(given.seed)
    print(torch.cuda.get_device_name())
    results, ratios = [], {}
    for group, (make, *values) in drawn(given.random, given.seed) if given.random else table():
        if given.only not in group:
            continue
        shown = " ".join(str(v).replace("torch.", "") for v in values)
        try:
            ours, theirs, error = make(*values)
            own, peer = measured([ours, theirs])
        except (tk.Error, RuntimeError) as failure:
            print(f"{group:26} {shown:36} failed: {str(failure).splitlines()[0]}", flush=True)
            ratios.setdefault(group, []).append(math.nan)
            continue
        ratios.setdefault(group, []).append(peer / own)
        results.append({"group": group, "case": shown, "us": own, "peer_us": peer, "difference": error})
        print(f"{group:26} {shown:36} {own:9.1f} us {peer:9.1f} us {peer / own:6.3f}  {error:.1e}", flush=True)
        del ours, theirs
        torch.cuda.empty_cache()
    print(f"\n{'group':26} {'worst':>6} {'5 %':>6} {'median':>6}")
    for group, all_of in ratios.items():
        order = sorted(all_of)
        fifth = order[len(order) // 20]
        print(f"{group:26} {order[0]:6.3f} {fifth:6.3f} {statistics.median(order):6.3f}")
    if given.out:
        with open(given.out, "w") as file:
            json.dump({"device": torch.cuda.get_device_name(), "results": results}, file, indent=1)


if __name__ == "__main__":
    main()
