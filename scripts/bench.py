"""Runs the benchmarks and prints ours, NumPy's and the ratio, measured in the same minutes.

    scripts/bench

Each kernel is measured by criterion with two threads, and NumPy directly before and after it: the machine may be
shared, and the better of both is what counts. Ours is the fastest sample too.
"""

import json
import os
import pathlib
import subprocess
import sys
import time

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
N, M = 1 << 24, 1024


def add():
    x, y, z = (np.arange(N, dtype=np.float32) for _ in range(3))
    return lambda: np.add(x, y, out=z)


def matmul():
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((M, M), np.float32) for _ in range(2))
    c = np.empty((M, M), np.float32)
    return lambda: np.matmul(a, b, out=c)


def softmax():
    x = np.random.default_rng(0).standard_normal((4096, M), np.float32)

    def run():
        e = np.exp(x - x.max(axis=1, keepdims=True))
        return e / e.sum(axis=1, keepdims=True)

    return run


CASES = [
    ("add 2^24 f32", add, 12 * N, "GB/s"),
    ("matmul 1024^3 f32", matmul, 2 * M**3, "GFLOP/s"),
    ("softmax 4096 x 1024 f32", softmax, 8 * 4096 * M, "GB/s"),
]


def best_of_numpy(run):
    """Seconds of the fastest of several runs."""
    run()
    times = []
    for _ in range(15):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times)


def criterion(bench, name, variant=None):
    """Runs one benchmark and gives the seconds of its fastest sample and of the median."""
    words = ["cargo", "bench", "--package", "tk-bench", "--bench", bench, "--"]
    exact = f"{name}/{variant}" if variant else name
    done = subprocess.run(words + ["--exact", exact], cwd=ROOT, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(done.stdout + done.stderr)
    folder = name.replace("^", "_") if variant is None else name.replace("^", "_") + "/" + variant
    path = TARGET / "criterion" / folder / "new" / "sample.json"
    sample = json.loads(path.read_text())
    times = sorted(t / i for t, i in zip(sample["times"], sample["iters"]))
    return times[0] / 1e9, times[len(times) // 2] / 1e9


def main():
    # Two threads, as NumPy has.
    os.environ["RAYON_NUM_THREADS"] = "2"
    print(f"{'kernel':26} {'ours':>20} {'NumPy':>20}   share of NumPy's speed")
    for name, make, work, unit in CASES:
        run = make()
        before = best_of_numpy(run)
        ours, _ = criterion("speed", name, "all threads")
        numpy = min(before, best_of_numpy(run))
        shown = [f"{t * 1e3:7.2f} ms {work / t / 1e9:5.1f} {unit}" for t in (ours, numpy)]
        print(f"{name:26} {shown[0]:>20} {shown[1]:>20}   {numpy / ours:.2f}")
    best, median = criterion("check", "check 2,000 lines")
    print(f"check 2,000 lines          {best * 1e3:7.2f} ms (median {median * 1e3:.2f} ms; the goal is 50 ms)")


if __name__ == "__main__":
    main()
