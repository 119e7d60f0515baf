"""The accuracy of functions of floats: each stays within the bound that its row of the op table states in
`spec/ops.md`. Every f16 and bf16; of f32 and f64 every exponent, and dense samples where functions are difficult.

The reference is NumPy in double precision for the types up to f32, mpmath for f64, Python's fractions for `fma`.
"""

import math
import pathlib
import re
from fractions import Fraction

import mpmath
import numpy as np

from casts import round_to
from launch import DTYPES, FLOATS, all_values, bits_type, problem, same

# Bits of the significand, smallest and largest exponent.
FORMAT = {"f16": (11, -14, 15), "bf16": (8, -126, 127), "f32": (24, -126, 127), "f64": (53, -1022, 1023)}
NAMES = {DTYPES[name]: name for name in FLOATS}

# References of NumPy and mpmath for functions that these have under another name, or not at all. `None`: exact, so that
# f64 needs no more digits.
REFERENCES = {
    "exp2": (np.exp2, lambda x: mpmath.power(2, x)),
    "log2": (np.log2, lambda x: mpmath.log(x) / mpmath.ln2),
    "erf": (np.vectorize(math.erf, otypes=[np.float64]), mpmath.erf),
    "rsqrt": (lambda x: 1 / np.sqrt(x), lambda x: 1 / mpmath.sqrt(x)),
    "round": (np.rint, None),
    "trunc": (np.trunc, None),
    "abs": (np.abs, None),
}
BINARY = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.divide,
    "%": np.fmod,
    "pow": np.power,
    "fma": None,
}


def compare(launcher):
    rows = table()
    stated = {op: accuracy for op, (_, _, accuracy) in rows.items()}
    unary = [op for op, (params, types, _) in rows.items() if params == ["x"] and types == "float"] + ["abs"]
    kernel = pathlib.Path(launcher.folder.name) / "unary.tk"
    kernel.write_text(unary_kernel(unary))
    for name in FLOATS:
        x = samples(name)
        results = launcher.run(f"{kernel}::functions", {"x": (name, x)}, {"z": (name, (len(unary), len(x)))})["z"]
        wide = x.astype(np.float64)
        for got, op in zip(results, unary):
            function, precise = REFERENCES.get(op) or (getattr(np, op), getattr(mpmath, op))
            yield f"{op} {name}", judge(got, function(wide), stated[op], name, (precise, x), x)
        a, b, c = operands(name)
        inputs = {"a": (name, a), "b": (name, b), "c": (name, c)}
        results = launcher.run("functions.tk::arithmetic", inputs, {"z": (name, (len(BINARY), len(a)))})["z"]
        for got, (op, function) in zip(results, BINARY.items()):
            if op == "fma":
                yield f"fma {name}", same(got, fma(a, b, c, name), a, b, c)
            else:
                expected = function(a.astype(np.float64), b.astype(np.float64))
                yield f"{op} {name}", judge(got, expected, stated[op], name, (mpmath.power, a, b), a, b)


def table():
    """Name or operator to the parameters at run time, the element types and the accuracy (`exact`, `rounded` or units in
    the last place), from the page made of the op table."""
    page = pathlib.Path(__file__).resolve().parent.parent.parent / "spec" / "ops.md"
    found, op = {}, None
    for line in page.read_text().splitlines():
        heading = re.match(r"### `(?:a (\S+) b|(\w+)\((.*)\))`", line)
        facts = re.search(r"(?:Element types: (.*?)\. )?Accuracy: (exact|rounded|([\d.]+) ulp)", line)
        if heading:
            op = heading[1] or heading[2]
            params = ["a", "b"] if heading[1] else [p for p in heading[3].split(", ") if ": const" not in p]
        elif facts and op not in found:
            found[op] = params, facts[1], float(facts[3]) if facts[3] else facts[2]
    return found


def unary_kernel(functions):
    """A kernel with a row of results for each function."""
    stores = "".join(f"    z.store([{i}, at], {op}(v)[None, :]);\n" for i, op in enumerate(functions))
    return f"""kernel functions[T: float, N: i32 = 4096](x: view[T, 1], z: mut view[T, 2])
    grid(cdiv(x.shape[0], N))
{{
    let at = program_id(0) * N;
    let v = x.load([at], [N]);
{stores}}}
"""


def samples(name):
    dtype = DTYPES[name]
    if dtype.itemsize <= 2:
        return all_values(name)
    bits = bits_type(name)
    rng = np.random.default_rng(5)
    if name == "f32":
        # Of every exponent the same number; the step is a prime, so that low bits vary.
        spread = np.arange(0, 1 << 32, 32771, dtype=np.uint64).astype(bits).view(dtype)
        dense = 4000
    else:
        spread = rng.integers(0, 1 << 64, 500, bits).view(dtype)
        dense = 150
    ordinary = [np.linspace(low, high, dense) for low, high in [(-110, 110), (-4, 4), (0.5, 2), (-2.0**-9, 2.0**-9)]]
    ordinary += [rng.uniform(-760, 760, dense), np.exp(rng.uniform(-700, 700, dense))]
    # Where the exponential functions end in f32 and in f64.
    ordinary += [np.linspace(low, high, dense) * sign for low, high in [(85, 105), (708, 712)] for sign in (1, -1)]
    # Where results are tiny or at a limit: multiples of pi/2, near 1, the ends of exp and exp2.
    ends = [88.722839, 88.7228, -87.33654, -103.97, -103.2789, 127.99999, 128, -149, -150]
    ends += [709.7827, -745.13, 1024, -1074]
    turns = np.arange(1, dense // 20) * (np.pi / 2)
    steps = np.array([1 + k * 2.0**-e for e in (5, 10, 23, 24, 40, 52) for k in (-3, -2, -1, 1, 2, 3)])
    halves = np.arange(-20, 20) + 0.5
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1, -1, 2.0**-126, 2.0**-149, 2.0**-1022, 2.0**-1074, 1e22])
    rest = ordinary + [ends, turns, steps, halves, special]
    return np.concatenate([spread] + [np.asarray(v).astype(dtype) for v in rest])


def operands(name):
    """Three arrays: pairs of special values, and random ones near each other, near 1 and of every size."""
    dtype, bits = DTYPES[name], bits_type(name)
    rng = np.random.default_rng(6)
    largest, smallest = largest_of(name), 2.0 ** (FORMAT[name][1] - FORMAT[name][0] + 1)
    edge = [0.0, smallest, 2.0 ** FORMAT[name][1], 0.5, 1.0, 1.5, 2.0, 3.0, 10.0, largest, np.inf, np.nan]
    edge = np.array(edge + [-v for v in edge]).astype(dtype)
    n = 2500
    random = [rng.integers(0, 1 << (8 * bits.itemsize), 3 * n, bits).view(dtype)]
    near = rng.uniform(0.5, 4, 3 * n).astype(dtype)
    signs = rng.choice([-1.0, 1.0], 3 * n)
    random += [near, (rng.uniform(0.5, 2, 3 * n) * signs).astype(dtype)]
    random.append((np.exp(rng.uniform(-8, 8, 3 * n)) * signs).astype(dtype))
    columns = np.concatenate([r.reshape(3, n) for r in random], axis=1)
    a = np.concatenate([np.repeat(edge, len(edge)), columns[0]])
    b = np.concatenate([np.tile(edge, len(edge)), columns[1]])
    c = np.concatenate([np.resize(edge, len(edge) ** 2), columns[2]])
    # For fma: addends that cancel the product nearly, or lie just below its last bit.
    product = (a.astype(np.float64) * b.astype(np.float64)).astype(dtype)
    cancel, tail = np.arange(len(a)) % 3 == 1, np.arange(len(a)) % 3 == 2
    small = (product.astype(np.float64) * 2.0 ** -FORMAT[name][0]).astype(dtype)
    return a, b, np.where(cancel, -product, np.where(tail, small, c))


def largest_of(name):
    precision, _, highest = FORMAT[name]
    return (2 - 2.0 ** (1 - precision)) * 2.0**highest


def ulps(got, expected, name="f32", exact=None):
    """The distance in units in the last place of `expected`, a float64; infinite where one is NaN and the other is not,
    or where an infinity or the sign of an exact zero is missed. `exact` corrects `expected`: the difference of the true value from it."""
    precision, lowest, highest = FORMAT[name]
    value, largest = got.astype(np.float64), largest_of(name)
    exponent = np.clip(np.frexp(np.abs(expected))[1] - 1, lowest, highest)
    error = np.clip(value, -largest, largest) - np.clip(expected, -largest, largest)
    if exact is not None:
        error = error - exact
    # In two steps: the unit of a subnormal f64 has no reciprocal.
    step = -exponent // 2
    distance = np.abs(np.ldexp(np.ldexp(error, step), precision - 1 - exponent - step))
    # One of them lies beyond the largest value, at least one unit further on.
    distance = distance + (np.isinf(value) != (np.abs(expected) > largest))
    bad = np.isnan(value) != np.isnan(expected)
    bad |= np.isinf(expected) & (value != expected)
    bad |= (expected == 0) & ((value != 0) | (np.signbit(value) != np.signbit(expected)))
    return np.where(bad, np.inf, np.where(np.isnan(expected), 0.0, distance))


def judge(got, expected, bound, name, precise, *inputs):
    """The problem of results against float64, which for f64 is corrected by mpmath."""
    if name == "f64" and bound == "rounded":
        return same(got, expected, *inputs)
    if bound == "exact" or bound == "rounded":
        return same(got, round_to(expected, expected, name), *inputs)
    if name in ["f16", "bf16"]:
        # Computed in f32 and rounded once.
        bound = 0.5 + bound * 2.0 ** (FORMAT[name][0] - FORMAT["f32"][0])
    exact = correction(expected, *precise) if name == "f64" else None
    distance = ulps(got, expected, name, exact)
    worst = problem(distance > bound, got, expected, *inputs)
    return worst and f"{worst} (off by up to {distance.max():.3g} ulp, {bound:.3g} are allowed)"


def correction(expected, function, *arrays):
    """The true values less `expected`, where these and the arguments are finite."""
    out = np.zeros(len(expected))
    ordinary = np.isfinite(expected) & (expected != 0) & np.all(np.isfinite(arrays), axis=0)
    with mpmath.workprec(140):
        for i in np.flatnonzero(ordinary):
            true = function(*(mpmath.mpf(float(a[i])) for a in arrays))
            out[i] = float(true - mpmath.mpf(float(expected[i])))
    return out


def fma(a, b, c, name):
    """`a * b + c` rounded once. Fractions are exact; NaN, infinities and zeros are as in the rounded arithmetic."""
    x, y, z = (v.astype(np.float64) for v in (a, b, c))
    plain = x * y + z
    out = np.empty(len(a))
    for i in range(len(a)):
        if not (np.isfinite(x[i]) and np.isfinite(y[i]) and np.isfinite(z[i])):
            # A product that overflows is no infinity here.
            product = np.sign(x[i]) * np.sign(y[i]) if np.isfinite(x[i]) and np.isfinite(y[i]) else x[i] * y[i]
            out[i] = product + z[i]
            continue
        true = Fraction(x[i]) * Fraction(y[i]) + Fraction(z[i])
        out[i] = plain[i] if x[i] == 0 or y[i] == 0 else odd(true, name)
    return round_to(out, out, name)


def odd(true, name):
    """A fraction in f64: nearest for f64 itself, rounded to odd for the others, whose own rounding follows."""
    try:
        near = float(true)
    except OverflowError:
        return math.inf if true > 0 else -math.inf
    if near == 0:
        near = math.copysign(near, true) if true else 0.0
    if name == "f64" or Fraction(near) == true:
        return near
    if abs(Fraction(near)) > abs(true):
        near = math.nextafter(near, 0.0)
    return float((np.array(near).view(np.uint64) | np.uint64(1)).view(np.float64))
