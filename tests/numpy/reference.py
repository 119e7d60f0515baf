"""What the kernels of examples/ compute, in NumPy float64, and the call of `tk run` on the same arrays.

Owns the references. May assume that `tk` and the examples lie where the caller says. Guarantees that both sides read
the same bits: a reference is computed from the arrays as they were written to the `.npy` files.
"""

import math
import pathlib
import subprocess
import time

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent

# How far a result may be from the float64 reference, relative to the largest element: a few roundings of the
# result's type for elementwise work, and the error of a sum in f32 that is proportional to its square root.
TOLERANCE = {"float16": 2e-3, "float32": 2e-5, "float64": 1e-12, "int32": 0, "uint8": 0}

# The kernels take it in f32.
EPS = float(np.float32(1e-5))


def wide(x):
    return x.astype(np.float64)


def erf(x):
    return np.vectorize(math.erf, otypes=[np.float64])(x)


def gelu(x):
    v = wide(x)
    return 0.5 * v * (1 + erf(v / math.sqrt(2)))


def gelu_tanh(x):
    v = wide(x)
    return 0.5 * v * (1 + np.tanh(math.sqrt(2 / math.pi) * (v + 0.044715 * v**3)))


def softmax(x):
    v = wide(x)
    if v.shape[1] == 0:
        return v
    e = np.exp(v - v.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def log_softmax(x):
    v = wide(x)
    if v.shape[1] == 0:
        return v
    below = v - v.max(axis=1, keepdims=True)
    return below - np.log(np.exp(below).sum(axis=1, keepdims=True))


def cross_entropy(x, targets, ignore=-100):
    v, kept = wide(x), targets != ignore
    largest = v.max(axis=1, keepdims=True)
    sums = np.log(np.exp(v - largest).sum(axis=1)) + largest[:, 0]
    return np.where(kept, sums - v[np.arange(len(v)), np.where(kept, targets, 0)], 0.0)


def rms_norm(x, weight, eps=EPS):
    v = wide(x)
    if v.shape[1] == 0:
        return v
    return v / np.sqrt((v * v).mean(axis=1, keepdims=True) + eps) * wide(weight)


def layer_norm(x, weight, bias, eps=EPS):
    v = wide(x)
    if v.shape[1] == 0:
        return v
    d = v - v.mean(axis=1, keepdims=True)
    return d / np.sqrt((d * d).mean(axis=1, keepdims=True) + eps) * wide(weight) + wide(bias)


def matmul(a, b, bias=None):
    c = wide(a) @ wide(b)
    return c if bias is None else c + wide(bias)


def segmented_scan(x, starts):
    """Running sums that start anew where `starts` is not 0."""
    sums = np.cumsum(wide(x))
    at = np.arange(len(x))
    begin = np.maximum.accumulate(np.where(starts != 0, at, 0)) if len(x) else at
    return sums - np.where(begin > 0, sums[begin - 1], 0.0) if len(x) else sums


def histogram(x, bins):
    return np.bincount(x[(x >= 0) & (x < bins)], minlength=bins).astype(np.float64)


def topk_routing(scores, k):
    """Experts, their weights, and how often each was chosen."""
    v = wide(scores)
    experts = np.argsort(-v, axis=1, kind="stable")[:, :k]
    best = np.take_along_axis(v, experts, axis=1)
    e = np.exp(best - best[:, :1])
    return wide(experts), e / e.sum(axis=1, keepdims=True), histogram(experts.ravel(), v.shape[1])


def philox(seed, offsets):
    """Word 0 of Philox-4x32-10 with counter (offset, 0, 0, 0)."""
    mask = np.uint64(0xFFFFFFFF)
    c = [offsets.astype(np.uint64) & mask] + [np.zeros(len(offsets), np.uint64)] * 3
    key = [np.uint64(seed) & mask, np.uint64(seed) >> np.uint64(32)]
    for _ in range(10):
        a, b = np.uint64(0xD2511F53) * c[0], np.uint64(0xCD9E8D57) * c[2]
        high, low = np.uint64(32), mask
        c = [(b >> high) ^ c[1] ^ key[0], b & low, (a >> high) ^ c[3] ^ key[1], a & low]
        key = [(key[0] + np.uint64(0x9E3779B9)) & mask, (key[1] + np.uint64(0xBB67AE85)) & mask]
    return c[0]


def dropout(x, p, seed):
    uniform = (philox(seed, np.arange(len(x))) >> np.uint64(8)).astype(np.float64) * 2.0**-24
    p = float(np.float32(p))
    return np.where(uniform >= p, wide(x) / (1.0 - p), 0.0)


def run(tk, folder, target, out, values, sets=()):
    """Runs a kernel: arrays go through `.npy` files. Gives the array `out` and the seconds of the whole command."""
    folder_of = ROOT / ("stdlib" if target.startswith("nn/") else "examples")
    words = [str(tk), "run", str(folder_of / target)]
    for name, value in values.items():
        if isinstance(value, np.ndarray):
            path = pathlib.Path(folder) / f"{name}.npy"
            np.save(path, value)
            value = path
        words.append(f"{name}={value}")
    result = pathlib.Path(folder) / f"{out}_out.npy"
    for name, value in sets:
        words += ["--set", f"{name}={value}"]
    start = time.perf_counter()
    done = subprocess.run(words + ["--out", f"{out}={result}"], capture_output=True, text=True)
    seconds = time.perf_counter() - start
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(words)}\nexit code {done.returncode}\n{done.stderr}")
    return np.load(result), seconds


def worst(result, reference):
    """The largest difference, relative to the largest element of the reference (at least 1)."""
    if result.shape != reference.shape:
        return math.inf
    if result.size == 0:
        return 0.0
    difference = np.abs(wide(result) - reference)
    if not np.all(np.isfinite(difference)):
        return math.inf
    return float(difference.max() / max(1.0, np.abs(reference).max()))
