"""Random numbers against Philox-4x32-10 in NumPy, which is first held against the known answers that its authors
publish (Random123, `kat_vectors`).
"""

import numpy as np

from functions import ulps
from launch import DTYPES, problem, same

# `philox4x32 10` of Random123's kat_vectors: counter, key, words.
KNOWN = [
    ("00000000 00000000 00000000 00000000", "00000000 00000000", "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
    ("ffffffff ffffffff ffffffff ffffffff", "ffffffff ffffffff", "408f276d 41c83b0e a20bc7c6 6d5451fd"),
    ("243f6a88 85a308d3 13198a2e 03707344", "a4093822 299f31d0", "d16cfe09 94fdcceb 5001e420 24126ea1"),
]
SEEDS = [0, 1, 42, 1 << 31, 1 << 32, (1 << 32) - 1, 0x123456789ABCDEF0, (1 << 64) - 1]
# The bound of `randn` in spec/ops.md.
NORMAL_ULPS = 8.0


def philox(counter, key):
    """Ten rounds on arrays of four and two words."""
    c, k = [np.asarray(w, np.uint64) for w in counter], [np.asarray(w, np.uint64) for w in key]
    low, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    for _ in range(10):
        a, b = c[0] * np.uint64(0xD2511F53), c[2] * np.uint64(0xCD9E8D57)
        c = [b >> half ^ c[1] ^ k[0], b & low, a >> half ^ c[3] ^ k[1], a & low]
        k = [k[0] + np.uint64(0x9E3779B9) & low, k[1] + np.uint64(0xBB67AE85) & low]
    return c


def compare(launcher):
    for counter, key, words in KNOWN:
        counter, key, words = ([int(w, 16) for w in text.split()] for text in (counter, key, words))
        got = [int(w) for w in philox(counter, key)]
        yield f"known answer {words[0]:08x}", None if got == words else f"the reference gives {got}"
    rng = np.random.default_rng(4)
    edge = np.array([0, 1, 2, (1 << 31) - 1, 1 << 31, (1 << 32) - 1], np.uint32)
    offsets = np.concatenate([edge, np.arange(2000, dtype=np.uint32), rng.integers(0, 1 << 32, 3000, np.uint32)])
    for seed in SEEDS:
        kind = "i32" if seed == 42 else "u32"
        yield from numbers(launcher, seed, offsets.view(DTYPES[kind]), kind)
        yield from library(launcher, seed, offsets.view(DTYPES[kind]), kind)


def numbers(launcher, seed, offsets, kind):
    n = len(offsets)
    zero = np.zeros(n, np.uint64)
    counter = [offsets.view(np.uint32), zero, zero, zero]
    key = [zero + np.uint64(seed & 0xFFFFFFFF), zero + np.uint64(seed >> 32)]
    words = [w.astype(np.uint32) for w in philox(counter, key)]
    units = [(w >> np.uint32(8)).astype(np.float64) * 2.0**-24 for w in words]
    normal = np.sqrt(-2 * np.log(units[0] + 2.0**-24)) * np.cos(2 * np.pi * units[1])
    inputs = {"offsets": (kind, offsets), "seed": seed}
    outputs = {"words": ("u32", (n,)), "uniform": ("f32", (5, n)), "normal": ("f32", (n,))}
    results = launcher.run("random_numbers.tk::numbers", inputs, outputs)
    yield f"randint seed {seed}", same(results["words"], words[0], offsets)
    names = ["rand", "rand4 0", "rand4 1", "rand4 2", "rand4 3"]
    for row, name, unit in zip(results["uniform"], names, [units[0]] + units):
        yield f"{name} seed {seed}", same(row, unit.astype(np.float32), offsets)
    wrong = ulps(results["normal"], normal) > NORMAL_ULPS
    yield f"randn seed {seed}", problem(wrong, results["normal"], normal, offsets)


def triton_uniform(words):
    """`uint_to_uniform_float` of Triton 3 (python/triton/language/random.py): the word as a signed number, mirrored, times
    a constant of f32 in f32."""
    x = words.view(np.int32)
    x = np.where(x < 0, -x - 1, x)
    return x.astype(np.float32) * np.float32(4.6566127342e-10)


def library(launcher, seed, offsets, kind):
    """What `std::random` makes."""
    n = len(offsets)
    zero = np.zeros(n, np.uint64)
    key = [zero + np.uint64(seed & 0xFFFFFFFF), zero + np.uint64(seed >> 32)]
    u = offsets.view(np.uint32)
    words = philox([u, zero, zero, zero], key) + philox([u, u + np.uint32(1), ~u, u * np.uint32(7)], key)
    words = [w.astype(np.uint32) for w in words]
    triton = [triton_uniform(w) for w in words[:4]]
    units = [(w >> np.uint32(8)).astype(np.float64) * 2.0**-24 for w in words]

    def pair(a, b):
        radius = np.sqrt(-2 * np.log(a))
        return [radius * np.cos(2 * np.pi * b), radius * np.sin(2 * np.pi * b)]

    wide = [np.maximum(t, np.float32(1e-7) if i % 2 == 0 else 0).astype(np.float64) for i, t in enumerate(triton)]
    normals = pair(units[0] + 2.0**-24, units[1]) + pair(units[2] + 2.0**-24, units[3]) + pair(*wide[:2]) + pair(*wide[2:])
    inputs = {"offsets": (kind, offsets), "seed": seed}
    outputs = {"words": ("u32", (8, n)), "uniform": ("f32", (5, n)), "normal": ("f32", (9, n))}
    results = launcher.run("random_numbers.tk::library", inputs, outputs)
    names = [f"{f} {i}" for f in ("randint4x", "philox") for i in range(4)]
    for row, name, expected in zip(results["words"], names, words):
        yield f"{name} seed {seed}", same(row, expected, offsets)
    names = [f"triton_rand4x {i}" for i in range(4)] + ["triton_rand"]
    for row, name, expected in zip(results["uniform"], names, triton + triton[:1]):
        yield f"{name} seed {seed}", same(row, expected, offsets)
    names = [f"{f} {i}" for f in ("randn4x", "triton_randn4x") for i in range(4)] + ["triton_randn"]
    for row, name, expected in zip(results["normal"], names, normals + normals[4:5]):
        # The angle is rounded to f32 before its cosine, which matters beside the zeros.
        wrong = np.abs(row.astype(np.float64) - expected) > 4e-6
        yield f"{name} seed {seed}", problem(wrong, row, expected, offsets)
