#!/usr/bin/env python3
"""What PyTorch and Triton reach on the works of tk-gpu-bench, as one JSON file.

    python3 peers.py --out peers.json [--only NAME ..] [--quick] [--elements N]

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
    return parser.parse_args()


ARGS = parse()
try:
    import torch
except ImportError:
    missing("there is no PyTorch for this Python; install it with `pip install torch`")
try:
    import triton
    import triton.language as tl
    from triton.testing import do_bench
except ImportError:
    missing("there is no Triton for this Python; install it with `pip install triton`")

WARP = 32
EPS = 1e-5


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < count
    x = tl.load(x_ptr + at, mask=inside)
    y = tl.load(y_ptr + at, mask=inside)
    tl.store(out_ptr + at, x + y, mask=inside)


@triton.jit
def gelu_kernel(x_ptr, out_ptr, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < count
    x = tl.load(x_ptr + at, mask=inside).to(tl.float32)
    # 0.5 * (1 + tanh(t)) is sigmoid(2 * t).
    t = 0.7978845608028654 * (x + 0.044715 * x * x * x)
    tl.store(out_ptr + at, (x * tl.sigmoid(2.0 * t)).to(tl.float16), mask=inside)


@triton.jit
def gelu_exact_kernel(x_ptr, out_ptr, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < count
    x = tl.load(x_ptr + at, mask=inside).to(tl.float32)
    y = 0.5 * x * (1.0 + tl.erf(x * 0.7071067811865476))
    tl.store(out_ptr + at, y.to(tl.float16), mask=inside)


@triton.jit
def softmax_kernel(x_ptr, out_ptr, cols, BLOCK: tl.constexpr):
    # A row may begin behind the first 2^31 elements.
    start = tl.program_id(0).to(tl.int64) * cols
    at = tl.arange(0, BLOCK)
    inside = at < cols
    x = tl.load(x_ptr + start + at, mask=inside, other=float("-inf")).to(tl.float32)
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + start + at, (e / tl.sum(e, axis=0)).to(tl.float16), mask=inside)


@triton.jit
def layer_norm_kernel(x_ptr, weight_ptr, bias_ptr, out_ptr, cols, eps, BLOCK: tl.constexpr):
    start = tl.program_id(0).to(tl.int64) * cols
    at = tl.arange(0, BLOCK)
    inside = at < cols
    x = tl.load(x_ptr + start + at, mask=inside, other=0.0).to(tl.float32)
    centered = tl.where(inside, x - tl.sum(x, axis=0) / cols, 0.0)
    scale = 1.0 / tl.sqrt(tl.sum(centered * centered, axis=0) / cols + eps)
    weight = tl.load(weight_ptr + at, mask=inside, other=0.0).to(tl.float32)
    bias = tl.load(bias_ptr + at, mask=inside, other=0.0).to(tl.float32)
    tl.store(out_ptr + start + at, (centered * scale * weight + bias).to(tl.float16), mask=inside)


@triton.jit
def nothing_kernel(x_ptr, y_ptr, z_ptr, count):
    pass


RESULTS = {}


def save():
    """Writes what there is: a kernel that never ends must not take the results before it along."""
    with open(ARGS.out, "w", encoding="utf-8") as file:
        json.dump(RESULTS, file, indent=1)
        file.write("\n")


def wanted(name):
    return not ARGS.only or any(only in name for only in ARGS.only)


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
        if not wanted(softmax) and not (wanted(layer_norm) and cols <= 16384):
            continue
        count = ARGS.elements // cols
        x = torch.randn(count, cols, device="cuda", dtype=torch.float16)
        out = torch.empty_like(x)
        traffic = 4 * x.numel()
        head = slice(0, min(count, max(1, (1 << 22) // cols)))
        if wanted(softmax):
            reference = torch.softmax(x[head].double(), -1)

            def make(block, warps):
                return lambda: softmax_kernel[(count,)](x, out, cols, BLOCK=block, num_warps=warps)

            runs = configurations(softmax, make, row_pairs(cols), traffic, lambda: off(out[head], reference))
            right = lambda: off(torch.softmax(x[head], -1), reference)
            put_work(softmax, runs, timed(lambda: torch.softmax(x, -1), traffic, right))
        if wanted(layer_norm) and cols <= 16384:
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
    RESULTS["launch"] = {"triton_us": best * 1e6}
    save()


def cold_compile():
    """The time of a compilation with nothing in any cache, the median of five after one that does not count."""
    f16, f32 = torch.float16, torch.float32
    cases = [
        ("add", add_kernel, (f32, f32, f32, 4096), 512),
        ("softmax", softmax_kernel, (f16, f16, 1000), 2048),
        ("layer_norm", layer_norm_kernel, (f16, f16, f16, f16, 1000, EPS), 2048),
    ]
    for name, kernel, arguments, block in cases:
        if not wanted(f"compile_{name}"):
            continue
        times = []
        try:
            for _ in range(6):
                kernel.device_caches.clear()
                triton.knobs.cache.dir = tempfile.mkdtemp(dir=os.environ["TRITON_CACHE_DIR"])
                begin = time.perf_counter()
                kernel.warmup(*arguments, BLOCK=block, grid=(1,))
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
    works = [cold_compile, copy, elementwise, rows]
    if wanted("launch"):
        works.insert(1, launch)
    for work in works:
        if work is copy and ARGS.only and all(only.startswith(("launch", "compile")) for only in ARGS.only):
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
