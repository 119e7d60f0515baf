"""Compares what `tk run` computes with NumPy, ml_dtypes, mpmath and Python's integers: every conversion, integer
operation, order, random number and function. The kernels lie beside this file.

    python tests/evidence/evidence.py [--tk target/debug/tk] [--device cpu] [PART ..]

Prints the first differences of each comparison that fails, and `evidence: N passed, N failed` at the end.
"""

import argparse
import importlib
import pathlib
import sys

import numpy as np

from launch import Launcher

PARTS = ["casts", "integers", "orders", "random_numbers", "functions"]


def main():
    root = pathlib.Path(__file__).resolve().parent.parent.parent
    parser = argparse.ArgumentParser()
    parser.add_argument("--tk", default=root / "target" / "debug" / "tk")
    parser.add_argument("--device", default="cpu", help="where the kernels run, such as sim")
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"any of {', '.join(PARTS)}; without one, all")
    args = parser.parse_args()
    unknown = [part for part in args.parts if part not in PARTS]
    if unknown:
        parser.error(f"unknown part: {', '.join(unknown)}")
    passed = failed = 0
    # Infinities and NaN are what is compared here.
    with Launcher(args.tk, args.device) as launcher, np.errstate(all="ignore"):
        for part in args.parts or PARTS:
            for name, problem in importlib.import_module(part).compare(launcher):
                if problem is None:
                    passed += 1
                else:
                    failed += 1
                    print(f"FAIL {part}: {name}: {problem}")
    print(f"evidence: {passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
