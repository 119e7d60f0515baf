"""Compares the kernels of examples/ and of std::nn with NumPy float64 on the same `.npy` files, ragged sizes included.

    python tests/numpy/compare.py [--tk target/debug/tk]

Prints one line for each comparison that fails, and `numpy: N passed, N failed` at the end.
"""

import argparse
import itertools
import sys
import tempfile

import numpy as np

from reference import (
    ROOT,
    TOLERANCE,
    cross_entropy,
    dropout,
    gelu,
    gelu_tanh,
    histogram,
    layer_norm,
    log_softmax,
    matmul,
    rms_norm,
    run,
    segmented_scan,
    softmax,
    topk_routing,
    wide,
    worst,
)

SIZES = [0, 1, 1000, 1023, 1025]
MNK = list(itertools.permutations([33, 257, 129]))
FLOATS = [np.float16, np.float32, np.float64]


def normal(rng, shape, dtype):
    return rng.standard_normal(shape).astype(dtype)


def name_of(dtype):
    return {"float16": "f16", "float32": "f32", "float64": "f64", "int8": "i8", "int32": "i32", "int64": "i64", "uint8": "u8"}[np.dtype(dtype).name]


def zeros(dtype, *shape):
    return f"zeros:{name_of(dtype)}[{','.join(map(str, shape))}]"


def vectors(rng):
    """add and gelu: one dimension."""
    for n, dtype in itertools.product(SIZES, FLOATS + [np.int32, np.uint8]):
        if np.issubdtype(dtype, np.floating):
            x, y = normal(rng, n, dtype), normal(rng, n, dtype)
        else:
            x, y = rng.integers(0, 100, n, dtype), rng.integers(0, 100, n, dtype)
        values = {"x": x, "y": y, "z": zeros(dtype, n), "n": n}
        yield f"add {name_of(dtype)} n={n}", dtype, ("add.tk", "z", values), wide(x) + wide(y)
    for n, dtype in itertools.product(SIZES, FLOATS):
        x = normal(rng, n, dtype)
        values = {"x": x, "y": zeros(dtype, n)}
        yield f"gelu {name_of(dtype)} n={n}", dtype, ("gelu.tk", "y", values), gelu(x)
        yield f"gelu tanh {name_of(dtype)} n={n}", dtype, ("gelu.tk", "y", values, [("TANH", "true")]), gelu_tanh(x)


def rows(rng):
    """softmax and layer norm: rows of a matrix."""
    for n, dtype in itertools.product(SIZES, FLOATS):
        x = normal(rng, (7, n), dtype)
        values = {"x": x, "y": zeros(dtype, 7, n)}
        yield f"softmax {name_of(dtype)} n={n}", dtype, ("softmax.tk", "y", values), softmax(x)
        # The mean is far from zero: padding that counts would show.
        x, w, b = (x + 3).astype(dtype), normal(rng, n, dtype), normal(rng, n, dtype)
        values = {"x": x, "weight": w, "bias": b, "y": zeros(dtype, 7, n)}
        yield f"layer_norm {name_of(dtype)} n={n}", dtype, ("layer_norm.tk", "y", values), layer_norm(x, w, b)


def products(rng):
    """The matrix products."""
    for (m, n, k), dtype in itertools.product(MNK, [np.float16, np.float32]):
        a, b, bias = normal(rng, (m, k), dtype), normal(rng, (k, n), dtype), normal(rng, n, np.float32)
        size = f"{name_of(dtype)} {m} x {n} x {k}"
        exact = matmul(a, b)
        views = {"a": a, "b": b, "c": zeros(np.float32, m, n)}
        for kernel in ["matmul.tk", "grouped.tk", "persistent.tk"]:
            yield f"{kernel} {size}", np.float32, (kernel, "c", views), exact
        yield f"matmul.tk {size} bias", np.float32, ("matmul.tk", "c", {**views, "bias": bias}), matmul(a, b, bias)
        strides = {"stride_am": k, "stride_ak": 1, "stride_bk": n, "stride_bn": 1, "stride_cm": n, "stride_cn": 1}
        values = {"a": a, "b": b, "c": zeros(dtype, m, n), "m": m, "n": n, "k": k, **strides}
        yield f"matmul_ptr.tk {size}", dtype, ("matmul_ptr.tk", "c", values), exact
        # A Fortran-ordered file holds the same matrix in another order of bytes.
        turned = {**views, "a": np.asfortranarray(a), "b": np.asfortranarray(b)}
        yield f"matmul.tk {size} Fortran order", np.float32, ("matmul.tk", "c", turned), exact


def library(rng):
    """The kernels of std::nn, on sizes of zero and on matrices in Fortran order too."""
    for (m, n), dtype in itertools.product([(7, s) for s in SIZES] + [(0, 5), (0, 0), (203, 3)], FLOATS):
        size = f"{name_of(dtype)} {m} x {n}"
        x, w, b = normal(rng, (m, n), dtype), normal(rng, n, dtype), normal(rng, n, dtype)
        values = {"x": x, "y": zeros(dtype, m, n)}
        for order, given in [("", x), (" Fortran order", np.asfortranarray(x))]:
            for kernel, exact in [("softmax", softmax(x)), ("log_softmax", log_softmax(x))]:
                call = (f"nn/softmax.tk::{kernel}", "y", {**values, "x": given})
                yield f"nn {kernel} {size}{order}", dtype, call, exact
        blocks = [("BLOCK", 64), ("WHOLE", "false")]
        yield f"nn softmax {size} in blocks", dtype, ("nn/softmax.tk::softmax", "y", values, blocks), softmax(x)
        weights = {**values, "weight": w, "bias": b}
        for sets in [(), blocks]:
            call = ("nn/norm.tk::layer_norm", "y", weights, sets)
            yield f"nn layer_norm {size} {sets}", dtype, call, layer_norm(x, w, b)
            call = ("nn/norm.tk::rms_norm", "y", {**values, "weight": w}, sets)
            yield f"nn rms_norm {size} {sets}", dtype, call, rms_norm(x, w)
        for axis, (order, given) in itertools.product([0, 1], [("", x), (" Fortran order", np.asfortranarray(x))]):
            kept, axes = x.shape[1 - axis], [("AXIS", axis)]
            parts = [*axes, ("BLOCK", 64), ("ROWS", 2), ("PARTS", 3), ("RAGGED", "false")]
            for sets in [axes] if order else [axes, parts]:
                name = f"{size}{order} {sets}"
                values = {"x": given, "y": zeros(dtype, kept)}
                call = ("nn/reduce.tk::reduce_sum", "y", values, sets)
                yield f"nn reduce_sum {name}", dtype, call, wide(x).sum(axis=axis)
                if x.shape[axis]:
                    call = ("nn/reduce.tk::reduce_mean", "y", values, sets)
                    yield f"nn reduce_mean {name}", dtype, call, wide(x).mean(axis=axis)
                    values = {"x": given, "y": zeros(np.int32, kept)}
                    call = ("nn/reduce.tk::reduce_argmax", "y", values, sets)
                    yield f"nn reduce_argmax {name}", np.int32, call, wide(np.argmax(x, axis=axis))
        if n:
            for kind, (order, given) in itertools.product(
                [np.int32, np.int64], [("", x), (" Fortran order", np.asfortranarray(x))]
            ):
                targets = rng.integers(0, n, m, kind)
                targets[1::3] = -100
                values = {"logits": given, "targets": targets, "loss": zeros(np.float32, m)}
                call = ("nn/cross_entropy.tk::cross_entropy", "loss", values)
                yield f"nn cross_entropy {size}{order} {name_of(kind)}", np.float32, call, cross_entropy(x, targets)
    sizes = [*MNK, (33, 40, 0), (0, 5, 7), (5, 0, 7), (1, 1, 1), (1, 257, 129)]
    for (m, n, k), dtype in itertools.product(sizes, FLOATS):
        a, b, bias = normal(rng, (m, k), dtype), normal(rng, (k, n), dtype), normal(rng, n, np.float32)
        size, values = f"{name_of(dtype)} {m} x {n} x {k}", {"a": a, "b": b, "c": zeros(dtype, m, n)}
        turned = {**values, "a": np.asfortranarray(a), "b": np.asfortranarray(b)}
        yield f"nn matmul {size}", dtype, ("nn/matmul.tk::matmul", "c", values), matmul(a, b)
        yield f"nn matmul {size} Fortran order", dtype, ("nn/matmul.tk::matmul", "c", turned), matmul(a, b)
        call = ("nn/matmul.tk::matmul", "c", {**values, "bias": bias})
        yield f"nn matmul {size} bias", dtype, call, matmul(a, b, bias)
        a, b = rng.integers(-128, 128, (m, k), np.int8), rng.integers(-128, 128, (k, n), np.int8)
        call = ("nn/matmul.tk::matmul", "c", {"a": a, "b": b, "c": zeros(np.int32, m, n)})
        yield f"nn matmul i8 {m} x {n} x {k}", np.int32, call, matmul(a, b)


def irregular(rng):
    """Scans, counts, choices and random numbers."""
    for n, dtype in itertools.product(SIZES, [np.int32, np.float32, np.float64]):
        # Whole numbers, whose sums are exact in every order.
        x = rng.integers(-100, 100, n).astype(dtype)
        starts = (rng.random(n) < 0.02).astype(np.int32)
        values = {"x": x, "starts": starts, "y": zeros(dtype, n)}
        call = ("segmented_scan.tk", "y", values, [("BLOCK", 128)])
        yield f"segmented_scan {name_of(dtype)} n={n}", dtype, call, segmented_scan(x, starts)
    for n, dtype in itertools.product(SIZES, [np.int32, np.uint8]):
        x = rng.integers(0, 200, n).astype(dtype)
        values = {"x": x, "counts": zeros(np.int32, 100)}
        yield f"histogram {name_of(dtype)} n={n}", np.int32, ("histogram.tk", "counts", values), histogram(x, 100)
    for n, dtype in itertools.product(SIZES, [np.float32, np.float64]):
        scores = normal(rng, (n, 12), dtype)
        values = {"scores": scores, "weights": zeros(dtype, n, 3), "experts": zeros(np.int32, n, 3)}
        values["counts"] = zeros(np.int32, 12)
        parts = zip(["experts", "weights", "counts"], [np.int32, dtype, np.int32], topk_routing(scores, 3))
        for out, kind, exact in parts:
            yield f"topk_routing {out} {name_of(dtype)} n={n}", kind, ("topk_routing.tk", out, values), exact
    for n, dtype in itertools.product(SIZES, FLOATS):
        x, seed = normal(rng, n, dtype), 2**40 + 7
        for kernel, given, out in [("dropout", "x", "y"), ("dropout_backward", "dy", "dx")]:
            values = {given: x, out: zeros(dtype, n), "p": 0.3, "seed": seed}
            call = (f"dropout.tk::{kernel}", out, values)
            yield f"{kernel} {name_of(dtype)} n={n}", dtype, call, dropout(x, 0.3, seed)


PARTS = [vectors, rows, products, irregular, library]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tk", default=ROOT / "target" / "debug" / "tk")
    args = parser.parse_args()
    rng = np.random.default_rng(1)
    passed = failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for name, dtype, call, reference in itertools.chain(*(part(rng) for part in PARTS)):
            try:
                result, _ = run(args.tk, folder, *call)
                error, allowed = worst(result, reference), TOLERANCE[np.dtype(dtype).name]
                problem = None if error <= allowed else f"is off by {error:.2e}, {allowed:.0e} is allowed"
            except RuntimeError as failure:
                problem = str(failure)
            if problem is None:
                passed += 1
            else:
                failed += 1
                print(f"FAIL {name}: {problem}")
    print(f"numpy: {passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
