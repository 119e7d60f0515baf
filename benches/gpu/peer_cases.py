"""What PyTorch reaches on cases of draws.py, and Triton and torch.compile where they are asked for."""

import json
import statistics

import torch
import torch.nn.functional as F
import triton

from triton_kernels import layer_norm_kernel, matmul_kernel, softmax_kernel

DTYPES = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32, "f8e4m3": torch.float8_e4m3fn}
EPS = 1e-5
# As tk-gpu-bench times cases: bytes that are written before each run, milliseconds that count, and the most runs.
FLUSH, BRIEF, MOST = 256 << 20, 30.0, 200
# BM, BN, BK, warps, stages of the product in Triton.
PRODUCTS = [(128, 256, 64, 8, 3), (128, 128, 64, 4, 4), (128, 64, 64, 4, 4), (64, 64, 64, 4, 5), (16, 128, 128, 4, 4)]
# Warps of a row in Triton.
WARPS = (4, 8, 16, 32)
# Elements that a thread may hold in Triton.
HELD = 128
# Random numbers are made as f32 in parts of that many.
PART = 1 << 26

POOLS = {}


def read(path, wanted):
    with open(path, encoding="utf-8") as file:
        return [case for case in json.load(file) if wanted(case["name"])]


def elements(case):
    """Elements of the operands of a case."""
    if case["work"] == "product":
        return case["k"] * (case["m"] + case["n"]) + 256
    return (case["rows"] + 2) * case["columns"] + 512


def pool(dtype, count):
    """Random numbers of a type, at least so many: all cases take theirs from the same ones."""
    if dtype not in POOLS or POOLS[dtype].numel() < count:
        POOLS.pop(dtype, None)
        numbers = torch.empty(count, device="cuda", dtype=DTYPES[dtype])
        for at in range(0, count, PART):
            part = numbers[at : at + PART]
            part.copy_(torch.randn(part.numel(), device="cuda"))
        POOLS[dtype] = numbers
    return POOLS[dtype]


class Clock:
    """Times work as tk-gpu-bench does: each run with an L2 that holds nothing of its inputs."""

    def __init__(self):
        self.flush = torch.empty(FLUSH, device="cuda", dtype=torch.int8)

    def median_of(self, count, run):
        events = []
        for _ in range(count):
            self.flush.zero_()
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            run()
            end.record()
            events.append((begin, end))
        torch.cuda.synchronize()
        return statistics.median(begin.elapsed_time(end) for begin, end in events)

    def brief(self, run):
        run()
        torch.cuda.synchronize()
        one = self.median_of(1, run)
        if one >= BRIEF:
            return one
        count = max(1, min(MOST, int(BRIEF / max(one, 1e-3))))
        self.median_of((count + 3) // 4, run)
        return self.median_of(count, run)


def timed(clock, case, run, compare=None):
    """The speed of one way to do a case, or why there is none. `compare` gives the norm of the error."""
    try:
        if compare:
            run()
            norm = compare()
            if not norm <= 1e-2:
                return {"error": f"the results are wrong: norm of the error {norm:.1e}"}
        ms = clock.brief(run)
        if case["work"] == "product":
            return {"ms": ms, "TFLOPs": 2.0 * case["m"] * case["n"] * case["k"] / ms / 1e9, "error": None}
        moved = case["rows"] * case["columns"] * DTYPES[case["dtype"]].itemsize
        # What reduces a row writes next to nothing.
        moved *= 1 if case["op"] in ("cross_entropy", "argmax", "sum", "mean") else 2
        return {"ms": ms, "TBps": moved / ms / 1e9, "error": None}
    except Exception as error:  # a case that fails leaves the others
        return {"error": f"{type(error).__name__}: {str(error)[:300]}"}


def off(out, reference):
    """Norm of the difference over the norm of a reference, of some rows of both."""
    some = slice(None, None, max(1, out.shape[0] // 64))
    exact = reference[some].double()
    return ((out[some].double() - exact).norm() / exact.norm()).item()


def best(runs):
    done = [run for run in runs if not run["error"]]
    return min(done, key=lambda run: run["ms"]) if done else (runs or [{"error": "no configuration fits"}])[0]


def matrix(numbers, rows, columns, order):
    """A matrix that is row-major, or the transpose of one."""
    flat = numbers[: rows * columns]
    return flat.view(columns, rows).t() if order == "t" else flat.view(rows, columns)


def product(clock, case, args):
    m, n, k, (of_a, of_b) = case["m"], case["n"], case["k"], case["order"]
    numbers = pool(case["dtype"], elements(case))
    # The second operand begins at a multiple of 256 bytes, as memory of the driver does.
    a, b = matrix(numbers, m, k, of_a), matrix(numbers[-(-m * k // 256) * 256 :], k, n, of_b)
    if case["dtype"] == "f8e4m3":
        return scaled(clock, case, a, b)
    # As the parameter of the library's product.
    torch.backends.cuda.matmul.allow_tf32 = bool(case.get("set", {}).get("TF32"))
    out = torch.empty(m, n, device="cuda", dtype=a.dtype)
    results = {"torch": timed(clock, case, lambda: torch.matmul(a, b, out=out))}
    if args.triton and case["dtype"] != "f32":
        results["triton"] = triton_product(clock, case, a, b, torch.matmul(a, b))
    return results


def scaled(clock, case, a, b):
    if case["order"] != "nt":
        return {"missing": "cuBLAS multiplies fp8 in the order nt only"}
    one = torch.ones((), device="cuda")

    def run(fast):
        return lambda: torch._scaled_mm(
            a, b, scale_a=one, scale_b=one, out_dtype=torch.bfloat16, use_fast_accum=fast
        )

    return {"torch": timed(clock, case, run(False)), "torch_fast": timed(clock, case, run(True))}


def triton_product(clock, case, a, b, reference):
    (m, k), n = a.shape, b.shape[1]
    c, runs = torch.empty_like(reference), []
    for bm, bn, bk, warps, stages in PRODUCTS:

        def run():
            matmul_kernel[(triton.cdiv(m, bm), triton.cdiv(n, bn))](
                a, b, c, m, n, k, *a.stride(), *b.stride(), *c.stride(),
                BM=bm, BN=bn, BK=bk, GROUP=8, num_warps=warps, num_stages=stages,
            )

        c.fill_(float("nan"))
        result = timed(clock, case, run, lambda: off(c, reference))
        runs.append(result | {"configuration": f"{bm} x {bn} x {bk}, num_warps = {warps}, num_stages = {stages}"})
    return best(runs)


def rows(clock, case, args):
    count, columns, op = case["rows"], case["columns"], case["op"]
    numbers = pool(case["dtype"], elements(case))
    x = numbers[: count * columns].view(count, columns)
    start = -(-count * columns // 256) * 256
    weight = numbers[start : start + columns]
    bias = numbers[start + columns : start + 2 * columns].clone()
    target = torch.arange(count, device="cuda") % columns if op == "cross_entropy" else None
    functions = {
        "softmax": lambda x: F.softmax(x, -1),
        "log_softmax": lambda x: F.log_softmax(x, -1),
        "layer_norm": lambda x: F.layer_norm(x, (columns,), weight, bias, EPS),
        "rms_norm": lambda x: F.rms_norm(x, (columns,), weight, EPS),
        "cross_entropy": lambda x: F.cross_entropy(x, target, reduction="none"),
        "argmax": lambda x: torch.argmax(x, -1),
        "sum": lambda x: torch.sum(x, -1),
        "mean": lambda x: torch.mean(x, -1),
    }
    function = functions[op]
    results = {"torch": timed(clock, case, lambda: function(x))}
    if args.compile:
        torch._dynamo.reset()
        compiled = torch.compile(function, dynamic=False)
        results["compiled"] = timed(clock, case, lambda: compiled(x))
    if args.triton and op in ("softmax", "layer_norm") and case["dtype"] == "f16":
        results["triton"] = triton_rows(clock, case, x, weight, bias, function(x))
    return results


def triton_rows(clock, case, x, weight, bias, reference):
    (count, columns), out, runs = x.shape, torch.empty_like(x), []
    block = triton.next_power_of_2(columns)
    for warps in (w for w in WARPS if 1 <= block // (w * 32) <= HELD):

        def run():
            if case["op"] == "softmax":
                softmax_kernel[(count,)](x, out, columns, BLOCK=block, num_warps=warps)
            else:
                layer_norm_kernel[(count,)](x, weight, bias, out, columns, EPS, BLOCK=block, num_warps=warps)

        out.fill_(float("nan"))
        result = timed(clock, case, run, lambda: off(out, reference))
        runs.append(result | {"configuration": f"BLOCK = {block}, num_warps = {warps}"})
    return best(runs)


def run(cases, args, results, save):
    """Measures cases; `save` is called after each."""
    clock = Clock()
    largest = {}
    for case in cases:
        try:
            largest[case["dtype"]] = max(largest.get(case["dtype"], 0), elements(case))
        except KeyError:  # what the case lacks is its error below
            pass
    for case in cases:
        try:
            # The numbers of a type are made once, for the largest of its cases.
            pool(case["dtype"], largest[case["dtype"]])
            found = product(clock, case, args) if case["work"] == "product" else rows(clock, case, args)
        except Exception as error:
            found = {"error": f"{type(error).__name__}: {str(error)[:300]}"}
        results[case["name"]] = found
        save()
