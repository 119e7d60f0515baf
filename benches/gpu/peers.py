#!/usr/bin/env python3
"""What PyTorch and Triton reach on the works of tk-gpu-bench, as one JSON file.

    python3 peers.py --out peers.json [--only NAME ..] [--quick] [--elements N] [--cases FILE]

The names of the works and the layout of the file are those of tk-gpu-bench. Times are medians of Triton's do_bench,
which writes a buffer larger than the L2 before each run. A kernel is timed after its result was compared with one in
double precision. Exit code 3: something is missing, in one sentence.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
import time

# What earlier runs compiled must not be found, or there would be no cold compile to time.
os.environ["TRITON_CACHE_DIR"] = tempfile.mkdtemp(prefix="tk-peers-")


def missing(sentence):
    print(f"peers.py: {sentence}", file=sys.stderr)
    sys.exit(3)


def parse():
    parser = argparse.ArgumentParser(description="Measures PyTorch and Triton on the works of tk-gpu-bench.")
    parser.add_argument("--out", required=True, help="where the results go")
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help="measure what has this in its name")
    parser.add_argument("--quick", action="store_true", help="fewer shapes and configurations")
    parser.add_argument("--elements", type=int, default=1 << 28, help="elements of each work, at most")
    parser.add_argument("--cases", metavar="FILE", help="measure the cases of a JSON file, and nothing else")
    parser.add_argument("--compile", action="store_true", help="of cases of rows, torch.compile as well")
    parser.add_argument("--triton", action="store_true", help="of cases, the kernels in Triton as well")
    return parser.parse_args()


ARGS = parse()
try:
    import torch
except ImportError:
    missing("there is no PyTorch for this Python; install it with `pip install torch`")
try:
    import triton
    from triton.testing import do_bench
except ImportError:
    missing("there is no Triton for this Python; install it with `pip install triton`")

import peer_cases
from triton_kernels import (
    add_kernel, gelu_exact_kernel, gelu_kernel, layer_norm_kernel, matmul_kernel, nothing_kernel, softmax_kernel,
)

WARP = 32
EPS = 1e-5

# What no device copy is needed for, by the beginning of `--only`.
WITHOUT_COPY = ("launch", "compile", "matmul", "accuracy")

RESULTS = {}


def save():
    """Writes what there is: a kernel that never ends must not take the results before it along."""
    with open(ARGS.out, "w", encoding="utf-8") as file:
        json.dump(RESULTS, file, indent=1)
        file.write("\n")


def wanted(name):
    return not ARGS.only or any(only in name for only in ARGS.only)


def wanted_row(name):
    """A work of rows; that of the library is compared with the same."""
    return wanted(name) or wanted(f"nn_{name}")


def milliseconds(run):
    return do_bench(run, warmup=20, rep=60, return_mode="median")


def off(out, reference):
    """Norm of the difference over the norm of a reference in double precision."""
    reference = reference.double()
    return ((out.double() - reference).norm() / reference.norm()).item()


def timed(run, traffic, compare):
    """The speed of one way to do a work, or why there is none. `compare` gives the norm of the error."""
    try:
        run()
        norm = compare()
        if not norm <= 2e-3:
            return {"error": f"the results are wrong: norm of the error {norm:.1e}"}
        ms = milliseconds(run)
        return {"ms": ms, "TBps": traffic / ms / 1e9, "error": None, "norm_of_error": norm}
    except Exception as error:  # a work that fails leaves the others
        return {"error": f"{type(error).__name__}: {str(error)[:300]}"}


def fastest(runs):
    return max(runs, key=lambda run: run.get("TBps", 0.0)) if runs else {"error": "no configuration fits"}


def put_work(name, triton_runs, torch_run):
    RESULTS.setdefault("works", {})[name] = {
        "triton": {"best": fastest(triton_runs), "all": triton_runs},
        "torch": torch_run,
    }
    save()


def configurations(name, make, pairs, traffic, compare):
    """Runs a Triton kernel in each configuration, a pair of BLOCK and warps."""
    runs = []
    for block, warps in pairs:
        run = timed(make(block, warps), traffic, compare)
        run["configuration"] = f"BLOCK = {block}, num_warps = {warps}"
        if run["error"]:
            print(f"peers.py: {name} ({run['configuration']}): {run['error']}", file=sys.stderr)
        runs.append(run)
    return runs


def copy():
    source = torch.randn(4 * ARGS.elements, device="cuda")
    target = torch.empty_like(source)
    ms = milliseconds(lambda: target.copy_(source))
    moved = 2 * source.numel() * source.element_size()
    RESULTS["copy"] = {"bytes": moved, "ms": ms, "TBps": moved / ms / 1e9}
    save()


def elementwise():
    count = ARGS.elements
    many = [(1024, 4), (2048, 8)] if ARGS.quick else [(1024, 4), (1024, 8), (2048, 4), (2048, 8), (4096, 4), (4096, 8)]
    grid = lambda block: (triton.cdiv(count, block),)
    # A reference of all elements in double precision takes more memory than it is worth: the first ones stand for them.
    head = slice(0, min(count, 1 << 24))
    if wanted("add_f32"):
        x, y = torch.randn(count, device="cuda"), torch.randn(count, device="cuda")
        out = torch.empty_like(x)
        compare = lambda: off(out[head], x[head].double() + y[head].double())

        def make(block, warps):
            return lambda: add_kernel[grid(block)](x, y, out, count, BLOCK=block, num_warps=warps)

        runs = configurations("add_f32", make, many, 12 * count, compare)
        put_work("add_f32", runs, timed(lambda: torch.add(x, y, out=out), 12 * count, compare))
        del x, y, out
    forms = [("gelu_f16", gelu_kernel, "tanh"), ("gelu_exact_f16", gelu_exact_kernel, "none")]
    for name, kernel, form in forms[: 1 if ARGS.quick else 2]:
        if not wanted(name):
            continue
        x = torch.randn(count, device="cuda").half()
        out = torch.empty_like(x)
        gelu = torch.nn.functional.gelu
        compare = lambda: off(out[head], gelu(x[head].double(), approximate=form))

        def make(block, warps):
            return lambda: kernel[grid(block)](x, out, count, BLOCK=block, num_warps=warps)

        runs = configurations(name, make, many, 4 * count, compare)
        right = lambda: off(gelu(x[head], approximate=form), gelu(x[head].double(), approximate=form))
        put_work(name, runs, timed(lambda: gelu(x, approximate=form), 4 * count, right))
        del x, out


def row_pairs(cols):
    """A thread holds at least one element of a row and at most 128."""
    block = triton.next_power_of_2(cols)
    warps = (4, 8) if ARGS.quick else (1, 2, 4, 8, 16, 32)
    return [(block, w) for w in warps if 1 <= block // (w * WARP) <= 128]


def rows():
    columns = (781, 4096) if ARGS.quick else (781, 1024, 4096, 16384, 65536)
    for cols in columns:
        softmax, layer_norm = f"softmax_f16_{cols}", f"layer_norm_f16_{cols}"
        if not wanted_row(softmax) and not wanted_row(layer_norm):
            continue
        count = ARGS.elements // cols
        x = torch.randn(count, cols, device="cuda", dtype=torch.float16)
        out = torch.empty_like(x)
        traffic = 4 * x.numel()
        head = slice(0, min(count, max(1, (1 << 22) // cols)))
        if wanted_row(softmax):
            reference = torch.softmax(x[head].double(), -1)

            def make(block, warps):
                return lambda: softmax_kernel[(count,)](x, out, cols, BLOCK=block, num_warps=warps)

            runs = configurations(softmax, make, row_pairs(cols), traffic, lambda: off(out[head], reference))
            right = lambda: off(torch.softmax(x[head], -1), reference)
            put_work(softmax, runs, timed(lambda: torch.softmax(x, -1), traffic, right))
        if wanted_row(layer_norm):
            weight, bias = (torch.randn(cols, device="cuda").half() for _ in range(2))
            norm = torch.nn.functional.layer_norm
            reference = norm(x[head].double(), (cols,), weight.double(), bias.double(), EPS)

            def make(block, warps):
                return lambda: layer_norm_kernel[(count,)](
                    x, weight, bias, out, cols, EPS, BLOCK=block, num_warps=warps
                )

            runs = configurations(layer_norm, make, row_pairs(cols), traffic, lambda: off(out[head], reference))
            right = lambda: off(norm(x[head], (cols,), weight, bias, EPS), reference)
            put_work(layer_norm, runs, timed(lambda: norm(x, (cols,), weight, bias, EPS), traffic, right))
        del x, out


def mixed(n):
    """The same as `mix` of tk-gpu-bench, on signed numbers."""

    def right(z, by):
        return (z >> by) & ((1 << (64 - by)) - 1)

    def signed(constant):
        return constant - (1 << 64)

    z = n * signed(0x9E3779B97F4A7C15)
    z = (z ^ right(z, 30)) * signed(0xBF58476D1CE4E5B9)
    z = (z ^ right(z, 27)) * signed(0x94D049BB133111EB)
    return z ^ right(z, 31)


def bell(operand, count):
    """The numbers of an operand, to the bit those of tk-gpu-bench: the sum of four uniform ones."""
    bits = mixed(torch.arange(count, dtype=torch.int64, device="cuda") + (operand << 56))
    words = sum((bits >> by) & 0xFFFF for by in (0, 16, 32, 48))
    return (words - 131070).float() / 32768.0


def operand(number, rows, cols, dtype):
    x = bell(number, rows * cols).view(rows, cols)
    if dtype == torch.int8:
        return (x.double() * 32.0).round().clamp(-127.0, 127.0).to(dtype)
    return x.to(dtype)


def timed_product(run, flops, compare):
    """The speed of one way to make a product, or why there is none."""
    try:
        run()
        norm = compare()
        if not norm <= 4e-3:
            return {"error": f"the results are wrong: norm of the error {norm:.1e}"}
        ms = milliseconds(run)
        return {"ms": ms, "TFLOPs": flops / ms / 1e9, "error": None, "norm_of_error": norm}
    except Exception as error:
        return {"error": f"{type(error).__name__}: {str(error)[:300]}"}


def triton_products(name, a, b, c, flops, compare):
    """Triton's kernel in each configuration: BM, BN, BK, warps, stages, group."""
    (m, k), n = a.shape, b.shape[1]
    if name.startswith("matmul_ptr"):
        tried = [(128, 128, 32, 4, 3, 0), (128, 128, 32, 8, 3, 0)]
    else:
        tried = [(128, 256, 64, 8, 3, 8), (128, 256, 64, 8, 4, 8), (256, 128, 64, 8, 3, 8), (128, 128, 64, 4, 4, 8)]
        tried += [(128, 128, 64, 8, 4, 8), (64, 256, 64, 4, 4, 8), (128, 64, 64, 4, 4, 8), (64, 64, 64, 4, 5, 8)]
    runs = []
    for bm, bn, bk, warps, stages, group in tried[: 2 if ARGS.quick else None]:
        run = lambda: matmul_kernel[(triton.cdiv(m, bm), triton.cdiv(n, bn))](
            a, b, c, m, n, k, *a.stride(), *b.stride(), *c.stride(),
            BM=bm, BN=bn, BK=bk, GROUP=group, num_warps=warps, num_stages=stages,
        )
        c.fill_(float("nan"))
        result = timed_product(run, flops, compare)
        result["configuration"] = f"{bm} x {bn} x {bk}, num_warps = {warps}, num_stages = {stages}"
        runs.append(result)
    return runs


def matrices():
    """Products of square matrices: cuBLAS through PyTorch, and Triton."""
    sizes = [4096] if ARGS.quick else [1000, 2048, 4096, 8192]
    works = [("matmul_ptr_f16_4096", torch.float16, 4096)]
    works += [(f"matmul_f16_{n}", torch.float16, n) for n in sizes]
    works += [(f"matmul_bf16_{n}", torch.bfloat16, n) for n in sizes]
    for name, dtype, n in works:
        if not wanted(name):
            continue
        a, b, c = operand(1, n, n, dtype), operand(2, n, n, dtype), torch.empty(n, n, device="cuda", dtype=dtype)
        some = slice(0, n, max(1, n // 64))
        reference = a[some].double() @ b.double()
        compare = lambda: off(c[some], reference)
        flops = 2.0 * n**3
        cublas = timed_product(lambda: torch.matmul(a, b, out=c), flops, compare)
        runs = triton_products(name, a, b, c, flops, compare)
        best = max(runs, key=lambda run: run.get("TFLOPs", 0.0))
        RESULTS.setdefault("matmul", {})[name] = {"cublas": cublas, "triton": {"best": best, "all": runs}}
        save()
        del a, b, c, reference


def exact_rows(a, b):
    """64 rows of a product in double precision. Products of f32 are exact there but for the order of the sum."""
    return a[:: a.shape[0] // 64].double() @ b.double()


def accuracy():
    """How far cuBLAS is from double precision on the inputs of tk-gpu-bench, with results of the same type."""
    f16, bf16, f32, f8 = torch.float16, torch.bfloat16, torch.float32, torch.float8_e4m3fn

    def f32_with(tf32):
        def run(a, b):
            torch.backends.cuda.matmul.allow_tf32 = tf32
            try:
                return torch.matmul(a, b)
            finally:
                torch.backends.cuda.matmul.allow_tf32 = False

        return run

    def scaled(a, b):
        one = torch.ones((), device="cuda")
        # The second operand is wanted column by column.
        return torch._scaled_mm(a, b.t().contiguous().t(), scale_a=one, scale_b=one, out_dtype=f32)

    kinds = [
        ("f16", f16, torch.matmul),
        ("f16_to_f32", f16, lambda a, b: torch.mm(a, b, out_dtype=f32)),
        ("bf16", bf16, torch.matmul),
        ("f32", f32, f32_with(False)),
        ("tf32", f32, f32_with(True)),
        ("f8e4m3_to_f32", f8, scaled),
        ("i8_to_i32", torch.int8, torch._int_mm),
    ]
    for kind, dtype, run in kinds:
        for k in (1024,) if ARGS.quick else (1024, 8192):
            name = f"accuracy_{kind}_{k}"
            if not wanted(name):
                continue
            try:
                a, b = operand(1, 1024, k, dtype), operand(2, k, 1024, dtype)
                exact = exact_rows(a, b)
                difference = run(a, b)[:: 1024 // 64].double() - exact
                size = exact.norm() / exact.numel() ** 0.5
                value = {
                    "rms": (difference.norm() / exact.norm()).item(),
                    "max": (difference.abs().max() / size).item(),
                    "error": None,
                }
            except Exception as error:
                value = {"error": f"{type(error).__name__}: {str(error)[:300]}"}
            RESULTS.setdefault("accuracy", {})[name] = value
            save()


def launch():
    """Host time of one launch, of a loop of 20000; the best of five."""
    x, launches = torch.empty(1024, device="cuda"), 20_000
    best = float("inf")
    for _ in range(5):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(launches):
            nothing_kernel[(1,)](x, x, x, 1024)
        best = min(best, (time.perf_counter() - begin) / launches)
    torch.cuda.synchronize()
    RESULTS["launch"] = {"triton_us": best * 1e6, "torch_graph_us": torch_graph()}
    save()


def torch_graph():
    """Time of one of a thousand kernels that do nothing in a graph of PyTorch, waiting included; the best of seven."""
    x, recorded, replays, best = torch.empty(1024, device="cuda"), 1000, 20, float("inf")
    graph = torch.cuda.CUDAGraph()
    nothing_kernel[(1,)](x, x, x, 1024)
    torch.cuda.synchronize()
    with torch.cuda.graph(graph):
        for _ in range(recorded):
            nothing_kernel[(1,)](x, x, x, 1024)
    for _ in range(7):
        graph.replay()
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(replays):
            graph.replay()
        torch.cuda.synchronize()
        best = min(best, (time.perf_counter() - begin) / replays / recorded)
    return best * 1e6


def cold_compile():
    """The time of a compilation with nothing in any cache, the median of five after one that does not count."""
    f16, f32 = torch.float16, torch.float32
    cases = [
        ("add", add_kernel, (f32, f32, f32, 4096), {"BLOCK": 512}),
        ("softmax", softmax_kernel, (f16, f16, 1000), {"BLOCK": 2048}),
        ("matmul_ptr", matmul_kernel, (f16, f16, f16, *[512] * 3, *[512, 1] * 3), {"BM": 128, "BN": 64, "BK": 64}),
        ("layer_norm", layer_norm_kernel, (f16, f16, f16, f16, 1000, EPS), {"BLOCK": 2048}),
    ]
    for name, kernel, arguments, blocks in cases:
        if not wanted(f"compile_{name}"):
            continue
        times = []
        try:
            for _ in range(6):
                kernel.device_caches.clear()
                triton.knobs.cache.dir = tempfile.mkdtemp(dir=os.environ["TRITON_CACHE_DIR"])
                begin = time.perf_counter()
                kernel.warmup(*arguments, **blocks, grid=(1,))
                times.append((time.perf_counter() - begin) * 1e3)
            value = {"triton_ms": statistics.median(times[1:])}
        except Exception as error:
            value = {"error": f"{type(error).__name__}: {str(error)[:300]}"}
        RESULTS.setdefault("compile", {})[name] = value
        save()


def main():
    if not torch.cuda.is_available():
        missing("PyTorch sees no GPU; `nvidia-smi` tells whether there is one")
    torch.manual_seed(0)
    RESULTS["device"] = torch.cuda.get_device_name()
    RESULTS["torch"], RESULTS["triton"] = torch.__version__, triton.__version__
    RESULTS["elements"] = ARGS.elements
    works = [cold_compile, matrices, accuracy, copy, elementwise, rows]
    if ARGS.cases:
        cases = peer_cases.read(ARGS.cases, wanted)
        works = [copy] if any(case.get("work") == "rows" for case in cases) else []
        works.append(lambda: peer_cases.run(cases, ARGS, RESULTS.setdefault("cases", {}), save))
    elif wanted("launch"):
        works.insert(1, launch)
    for work in works:
        if work is copy and not ARGS.cases and ARGS.only and all(only.startswith(WITHOUT_COPY) for only in ARGS.only):
            continue
        try:
            work()
        except Exception as error:
            print(f"peers.py: {work.__name__}: {type(error).__name__}: {error}", file=sys.stderr)
            RESULTS.setdefault("failed", {})[work.__name__] = str(error)[:300]
            save()
        torch.cuda.empty_cache()
    save()


main()
