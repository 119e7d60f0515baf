"""What integers do against Python's own, which have no width: all pairs of the 8-bit types, and of the wider ones all
pairs of the values around every limit, with random ones.
"""

import numpy as np

from launch import DTYPES, INTS, same

RANDOM = 3000
# Amounts of shifts in types of their own.
LONG = [0, 1, 7, 8, 31, 32, 63, 64, 65, 255, 256, 1 << 32, (1 << 32) + 1, (1 << 63) - 1, -1, -8, -(1 << 32), -(1 << 63)]
SHORT = [0, 1, 3, 7, 8, 15, 16, 31, 32, 33, 63, 64, 100, 128, 200, 255]


def compare(launcher):
    for name in INTS:
        yield from elementwise(launcher, name)
        yield from folds(launcher, name)


def pairs(name):
    dtype = DTYPES[name]
    limits = np.iinfo(dtype)
    if dtype.itemsize == 1:
        every = np.arange(limits.min, limits.max + 1).astype(dtype)
        return np.repeat(every, 256), np.tile(every, 256)
    width = 8 * dtype.itemsize
    powers = [1 << i for i in (1, 2, width // 2 - 1, width // 2, width // 2 + 1, width - 2, width - 1)]
    near = [sign * p + d for p in powers for sign in (1, -1) for d in (-1, 0, 1)]
    edge = {v for v in near + list(range(-9, 10)) + [100, 12345, width, limits.min, limits.max]}
    edge = np.array(sorted(v for v in edge if limits.min <= v <= limits.max), dtype)
    rng = np.random.default_rng(2)
    bits = np.dtype(f"u{dtype.itemsize}")
    random = [rng.integers(0, 1 << width, RANDOM, dtype=bits) >> rng.integers(0, width, RANDOM).astype(bits)]
    random.append(rng.permutation(random[0]))
    a, b = np.repeat(edge, len(edge)), np.tile(edge, len(edge))
    return np.concatenate([a, random[0].view(dtype)]), np.concatenate([b, random[1].view(dtype)])


def wrap(values, dtype):
    """Python's integers with the low bits of a type."""
    width = 8 * dtype.itemsize
    low = values & ((1 << width) - 1)
    unsigned = low.astype(np.dtype(f"u{dtype.itemsize}"))
    return unsigned.view(dtype)


def quotient(x, y):
    """Truncated toward zero."""
    floor = abs(x) // abs(y)
    return np.where((x < 0) != (y < 0), -floor, floor)


def shift_left(x, n, width):
    return np.where((n < 0) | (n >= width), 0, x << np.clip(n, 0, width - 1))


def shift_right(x, n, width):
    """All bits out leaves the sign: 0 or -1."""
    return x >> np.where((n < 0) | (n >= width), width, n)


def elementwise(launcher, name):
    dtype = DTYPES[name]
    width = 8 * dtype.itemsize
    a, b = pairs(name)
    n = len(a)
    long = np.resize(np.array(LONG, np.int64), n)
    short = np.resize(np.array(SHORT, np.uint8), n)
    x, y, i, u = (v.astype(object) for v in (a, b, long, short))
    divisor = np.where(y == 0, 1, y)
    q = quotient(x, divisor)
    exact = (divisor * q) == x
    up = q + np.where(~exact & ((x < 0) == (divisor < 0)), 1, 0)
    arithmetic = {
        "+": x + y, "-": x - y, "*": x * y, "/": q, "%": x - q * divisor, "&": x & y, "|": x | y, "^": x ^ y,
        "<<": shift_left(x, y, width), ">>": shift_right(x, y, width),
        "<< i64": shift_left(x, i, width), ">> i64": shift_right(x, i, width),
        "<< u8": shift_left(x, u, width), ">> u8": shift_right(x, u, width),
        "maximum": np.maximum(x, y), "minimum": np.minimum(x, y),
        "maxnum": np.maximum(x, y), "minnum": np.minimum(x, y),
        "prefix -": -x, "abs": abs(x), "cdiv": up, "clamp": np.minimum(np.maximum(x, y), 100),
    }  # fmt: skip
    comparisons = {"==": a == b, "!=": a != b, "<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b}
    low = [int(v) & ((1 << width) - 1) for v in a]
    counts = {
        "popcount": np.array([v.bit_count() for v in low], np.int32),
        "clz": np.array([width - v.bit_length() for v in low], np.int32),
    }
    inputs = {"a": (name, a), "b": (name, b), "long": ("i64", long), "short": ("u8", short)}
    outputs = {"same": (name, (len(arithmetic), n)), "truth": ("bool", (len(comparisons), n))}
    outputs["counts"] = ("i32", (len(counts), n))
    results = launcher.run("integers.tk::integers", inputs, outputs)
    for row, (op, exact) in enumerate(arithmetic.items()):
        yield f"{name} {op}", same(results["same"][row], wrap(exact, dtype), a, b, long, short)
    for kind, expected in (("truth", comparisons), ("counts", counts)):
        for row, (op, exact) in enumerate(expected.items()):
            yield f"{name} {op}", same(results[kind][row], exact, a, b)
    # `mulhi`; `umulhi` is the same operation for unsigned types.
    results = launcher.run("integers.tk::upper", {k: inputs[k] for k in "ab"}, {"z": (name, (n,))})
    yield f"{name} mulhi", same(results["z"], wrap((x * y) >> width, dtype), a, b)


def folds(launcher, name):
    """Rows of every length's neighbour would cost a launch each: one odd extent, the wide types of `sum` and `prod`."""
    dtype = DTYPES[name]
    wide = name if dtype.itemsize >= 4 else f"{name[0]}32"
    a, b = pairs(name)
    length, rows = 37, 60
    rng = np.random.default_rng(3)
    x = rng.choice(np.concatenate([a, b]), (rows, length))
    # Extremes at several places: the first of equals counts.
    x[::3, 5] = x[::3, 30] = np.iinfo(dtype).max
    x[::4, 6] = x[::4, 20] = np.iinfo(dtype).min
    outputs = {"same": (name, (4, rows)), "wide": (wide, (3, rows)), "places": ("i32", (2, rows))}
    results = launcher.run("integers.tk::folds", {"x": (name, x)}, outputs, {"W": wide, "N": length})
    total = wrap(x.astype(object).sum(axis=1), DTYPES[wide])
    expected = {
        ("same", "max"): x.max(axis=1),
        ("same", "min"): x.min(axis=1),
        ("same", "xor_sum"): np.bitwise_xor.reduce(x, axis=1),
        ("same", "reduce_or"): np.bitwise_or.reduce(x, axis=1),
        ("wide", "sum"): total,
        ("wide", "prod"): wrap(x.astype(object).prod(axis=1), DTYPES[wide]),
        ("wide", "cumsum"): total,
        ("places", "argmax"): x.argmax(axis=1).astype(np.int32),
        ("places", "argmin"): x.argmin(axis=1).astype(np.int32),
    }
    row = {"same": 0, "wide": 0, "places": 0}
    for (kind, op), exact in expected.items():
        yield f"{name} {op}", same(results[kind][row[kind]], exact, np.arange(rows))
        row[kind] += 1
