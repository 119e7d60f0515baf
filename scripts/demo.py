"""Runs add, softmax and matmul on arrays that it makes, and says how close the results are to NumPy float64.

    python scripts/demo.py TK

The arrays stand in out/.
"""

import pathlib
import sys

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "numpy"))

from reference import TOLERANCE, matmul, run, softmax, wide, worst  # noqa: E402

N = 1_000_003
ROWS, COLUMNS = 1024, 1000
M, N_COLUMNS, K = 512, 500, 300


def cases(rng):
    x, y = (rng.standard_normal(N).astype(np.float32) for _ in range(2))
    values = {"x": x, "y": y, "z": f"zeros:f32[{N}]", "n": N}
    yield f"add, {N} x f32", np.float32, ("add.tk", "z", values), wide(x) + wide(y)

    x = rng.standard_normal((ROWS, COLUMNS)).astype(np.float16)
    values = {"x": x, "y": f"zeros:f16[{ROWS},{COLUMNS}]"}
    yield f"softmax, {ROWS} x {COLUMNS} f16", np.float16, ("softmax.tk", "y", values), softmax(x)

    a, b = (rng.standard_normal(shape).astype(np.float16) for shape in [(M, K), (K, N_COLUMNS)])
    bias = rng.standard_normal(N_COLUMNS).astype(np.float32)
    values = {"a": a, "b": b, "bias": bias, "c": f"zeros:f32[{M},{N_COLUMNS}]"}
    yield f"matmul + bias, {M} x {N_COLUMNS} x {K} f16", np.float32, ("matmul.tk", "c", values), matmul(a, b, bias)


def main():
    tk = sys.argv[1]
    out = ROOT / "out"
    out.mkdir(exist_ok=True)
    good = True
    for name, dtype, call, reference in cases(np.random.default_rng(0)):
        try:
            result, seconds = run(tk, out, *call)
        except RuntimeError as failure:
            print(failure)
            return 1
        error, allowed = worst(result, reference), TOLERANCE[np.dtype(dtype).name]
        good &= error <= allowed
        verdict = "ok" if error <= allowed else f"WRONG, {allowed:.0e} is allowed"
        print(f"{name:36} {seconds:6.2f} s   largest relative difference from NumPy float64 {error:.1e}   {verdict}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
