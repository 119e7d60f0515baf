"""Orders of floats: comparisons, choices, reductions, sorting. Where NumPy decides as the language does, it is the
reference; where it does not, the rule of the language stands here: -0 is less than +0 in every order but the
comparisons, NaN wins in `maximum` and `max` and is last in `sort`, and nothing is flushed to zero.
"""

import itertools
import math

import numpy as np

from casts import round_to
from functions import FORMAT
from launch import DTYPES, F8, FLOATS, all_values, bits_type, differ, problem, same

LENGTH, TOP = 13, 5


def compare(launcher):
    for name in FLOATS + F8:
        yield from pairs(launcher, name)
    for name in FLOATS:
        yield from folds(launcher, name)
    for name in F8:
        yield from narrow_folds(launcher, name)


def special(name):
    """Zeros, subnormals, the limits, infinities, NaNs of both signs."""
    if name in F8:
        return all_values(name)
    dtype = DTYPES[name]
    precision, lowest, highest = FORMAT[name]
    tiny, least = 2.0 ** (lowest - precision + 1), 2.0**lowest
    positive = [0.0, tiny, 2 * tiny, 3 * tiny, least - tiny, least, 0.5, 1.0, 1.5, 2.0, 100.0, 2.0**highest]
    positive = np.array(positive + [np.inf, np.nan]).astype(dtype)
    return np.concatenate([positive, -positive])


def key(x):
    """A number for each float, in the order of the language: NaN above all, -0 below +0."""
    bits = x.view(np.dtype(f"u{x.itemsize}")).astype(object)
    half = 1 << (8 * x.itemsize - 1)
    order = np.where(bits >= half, half - 1 - bits, bits)
    return np.where(np.isnan(x.astype(np.float64)), half, order)


def pairs(launcher, name):
    every = special(name)
    a, b = np.repeat(every, len(every)), np.tile(every, len(every))
    if name not in F8:
        rng = np.random.default_rng(7)
        random = rng.integers(0, 1 << (8 * a.itemsize), (2, 3000), bits_type(name)).view(DTYPES[name])
        a, b = np.concatenate([a, random[0]]), np.concatenate([b, random[1]])
    x, y = a.astype(np.float64), b.astype(np.float64)
    truth = {"==": x == y, "!=": x != y, "<": x < y, "<=": x <= y, ">": x > y, ">=": x >= y}
    truth |= {"isnan": np.isnan(x), "isinf": np.isinf(x), "isfinite": np.isfinite(x)}
    inputs = {"a": (name, a), "b": (name, b)}
    got = launcher.run("orders.tk::pairs", inputs, {"truth": ("bool", (len(truth), len(a)))}, {"T": name})["truth"]
    for row, (op, expected) in zip(got, truth.items()):
        yield f"{name} {op}", same(row, expected, a, b)
    largest = np.where(key(a) >= key(b), a, b)
    nan = np.isnan(x) | np.isnan(y)
    smallest = np.where(nan, largest, np.where(key(a) <= key(b), a, b))
    one = np.ones_like(a)
    expected = {
        "maximum": largest,
        "minimum": smallest,
        "maxnum": np.where(np.isnan(x), b, np.where(np.isnan(y), a, largest)),
        "minnum": np.where(np.isnan(x), b, np.where(np.isnan(y), a, smallest)),
        "clamp": np.where(nan | (key(largest) <= key(one)), largest, one),
        "prefix -": -a,
        "abs": abs(a),
    }
    got = launcher.run("orders.tk::choices", inputs, {"z": (name, (len(expected), len(a)))}, {"T": name})["z"]
    for row, (op, value) in zip(got, expected.items()):
        yield f"{name} {op}", same(row, value.astype(DTYPES[name]), a, b)


def narrow_folds(launcher, name):
    """The largest and the smallest of fp8, which is neither summed nor sorted here: every code, alone, and in rows."""
    every = all_values(name)
    rng = np.random.default_rng(9)
    x = np.concatenate([every.repeat(LENGTH).reshape(-1, LENGTH), rng.choice(every, (600, LENGTH))])
    # Few rows of random codes are without NaN.
    finite = every[np.isfinite(every.astype(np.float64))]
    x = np.concatenate([x, rng.choice(finite, (600, LENGTH))])
    order = key(x)
    nan = np.isnan(x.astype(np.float64))
    at = np.where(nan.any(axis=1), nan.argmax(axis=1), 0)
    largest = np.where(nan.any(axis=1), at, order.argmax(axis=1))
    smallest = np.where(nan.any(axis=1), at, order.argmin(axis=1))
    n = len(x)
    outputs = {"values": (name, (4, n)), "places": ("i32", (2, n))}
    got = launcher.run("orders.tk::narrow_folds", {"x": (name, x)}, outputs, {"N": LENGTH, "T": name})
    every_row = np.arange(n)
    for i, op in enumerate(["max", "min", "max of columns", "min of columns"]):
        expected = x[every_row, smallest if i % 2 else largest]
        yield f"{name} {op}", same(got["values"][i], expected, every_row)
    for row, op, expected in zip(got["places"], ["argmax", "argmin"], [largest, smallest]):
        yield f"{name} {op}", same(row, expected.astype(np.int32), every_row)


def rows_of(name):
    """Rows in which special values stand at every place, alone, in pairs and everywhere."""
    dtype, every = DTYPES[name], special(name)
    rng = np.random.default_rng(8)
    # Whole numbers times one power of two: every sum of them is exact, whatever its order.
    plain = rng.integers(-3, 4, (len(every) * 6, LENGTH)).astype(np.float64)
    rows = [plain.astype(dtype)]
    for value, at in itertools.product(every, [0, 6, LENGTH - 1]):
        row = rng.integers(-3, 4, LENGTH).astype(dtype)
        row[at] = value
        rows.append(row[None])
        row = row.copy()
        row[rng.integers(0, LENGTH)] = rng.choice(every)
        rows.append(row[None])
    rows.append(np.repeat(every[:, None], LENGTH, axis=1))
    zeros = np.where(rng.integers(0, 2, (40, LENGTH)) == 1, 0.0, -0.0)
    rows.append(zeros.astype(dtype))
    rows.append(rng.choice(every, (100, LENGTH)))
    precision, lowest, _ = FORMAT[name]
    rows.append((rng.integers(-3, 4, (40, LENGTH)) * 2.0 ** (lowest - precision + 1)).astype(dtype))
    return np.concatenate(rows)


def folds(launcher, name):
    x = rows_of(name)
    n = len(x)
    outputs = {"values": (name, (9, n)), "places": ("i32", (4, n)), "truth": ("bool", (4, n))}
    outputs |= {"sorted": (name, (3, n, LENGTH)), "order": ("i32", (2, n, LENGTH))}
    outputs |= {"best": (name, (n, TOP)), "best_at": ("i32", (n, TOP))}
    got = launcher.run("orders.tk::folds", {"x": (name, x)}, outputs, {"N": LENGTH, "K": TOP})
    rank = key(x)
    nan = np.isnan(x.astype(np.float64))
    # NaN is the first of both searches.
    low = np.where(nan, -np.inf, rank.astype(object))
    largest, smallest = rank.argmax(axis=1), low.argmin(axis=1)
    pick = lambda places: np.take_along_axis(x, places[:, None], axis=1)[:, 0]
    lines = np.arange(n)
    places = [largest, smallest] * 2
    for row, (op, expected) in enumerate(zip(["argmax", "argmin", "argmax axis 0", "argmin axis 0"], places)):
        yield f"{name} {op}", same(got["places"][row], expected.astype(np.int32), lines)
    without = [np.where(nan, -1 << 80, rank).argmax(axis=1), np.where(nan, 1 << 80, rank).argmin(axis=1)]
    choices = [largest, smallest, largest, smallest] + without
    names = ["max", "min", "max axis 0", "min axis 0", "reduce maxnum", "reduce minnum"]
    for row, (op, expected) in enumerate(zip(names, choices)):
        yield f"{name} {op}", same(got["values"][row + 2], pick(expected), lines)
    for row, op in ((0, "sum"), (8, "sum axis 0"), (1, "prod")):
        yield f"{name} {op}", total(got["values"][row], x, name, math.prod if op == "prod" else sum)
    wide = x.astype(np.float64)
    logic = {
        "any": np.any(wide > 0, axis=1),
        "all": np.all(wide > 0, axis=1),
        "any isnan": nan.any(axis=1),
        "all equal": ~nan.any(axis=1),
    }
    for row, (op, expected) in zip(got["truth"], logic.items()):
        yield f"{name} {op}", same(row, expected, lines)
    up = np.argsort(rank, axis=1, kind="stable")
    # Descending is stable too, and NaN stays last.
    down = np.argsort(np.where(nan, 1 << 80, -rank), axis=1, kind="stable")
    top = np.argsort(-rank, axis=1, kind="stable")[:, :TOP]
    where = np.repeat(lines[:, None], LENGTH, axis=1)
    take = lambda order: np.take_along_axis(x, order, axis=1)
    for row, (op, order) in enumerate({"sort": up, "sort descending": down, "sort axis 0": up}.items()):
        yield f"{name} {op}", same(got["sorted"][row], take(order), where)
        if row < 2:
            yield f"{name} {op} values", same(got["order"][row], order.astype(np.int32), where)
    yield f"{name} topk", same(got["best"], take(top), where[:, :TOP])
    yield f"{name} topk places", same(got["best_at"], top.astype(np.int32), where[:, :TOP])


def total(got, x, name, fold):
    """Sums and products. The order is unspecified: rows are compared whose result no order changes, which are those
    where nothing on the way rounds, overflows or underflows in the type that accumulates (f32 for f16 and bf16), and
    with it infinities and NaN. A sum of zeros has the sign that the order gives it."""
    precision, _, highest = FORMAT["f64" if name == "f64" else "f32"]
    expected, known = np.zeros(len(x)), np.zeros(len(x), bool)
    for i, row in enumerate(x.astype(np.float64)):
        finite = row[np.isfinite(row)]
        values = finite[finite != 0]
        largest = np.abs(values).max(initial=0)
        if fold is sum:
            known[i] = largest * LENGTH <= last_bit(values) * 2.0**precision and largest <= 2.0 ** (highest - 4)
            expected[i] = row.sum()
        else:
            size = math.prod(abs(v) for v in values.tolist())
            known[i] = size < 2.0**precision and largest <= 4 and np.all(values % 1 == 0)
            expected[i] = np.prod(row)
    rounded = round_to(expected, expected, name)
    zero = (rounded.astype(np.float64) == 0) & (got.astype(np.float64) == 0)
    few = None if known.mean() > 0.4 else f"only {known.mean():.0%} of the rows are compared"
    return few or problem(known & ~zero & differ(got, rounded), got, rounded, np.arange(len(x)))


def last_bit(values):
    """The smallest power of two of which all are whole multiples."""
    if len(values) == 0:
        return 1.0
    mantissa, exponent = np.frexp(np.abs(values))
    whole = np.ldexp(mantissa, 53).astype(np.int64)
    return np.ldexp((whole & -whole).astype(np.float64), exponent - 53).min()
