"""Every pair of element types against NumPy and ml_dtypes: all values of types of 8 and 16 bits; of the wider ones
the neighbours of every limit, of every value of the narrow floats and of every point halfway between two of these, and
random bits. `e2m1` goes through the bytes that hold two of them; `e8m0` is no type of files.
"""

import ml_dtypes
import numpy as np

from launch import DTYPES, F8, FLOATS, INTS, all_values, bits_type, same

TARGETS = INTS + FLOATS + F8
NARROW = ["f16", "bf16"] + F8
RANDOM = 40_000


def compare(launcher):
    for source in ["bool"] + TARGETS:
        x = values(source)
        outputs = {f"{target}_": (target, x.shape) for target in TARGETS}
        results = launcher.run("casts.tk::casts", {"x": (source, x)}, outputs, {"S": source})
        for target in TARGETS:
            expected = x if source == target else cast(x, target)
            yield f"{source} as {target}", same(results[f"{target}_"], expected, x)
        if source != "bool":
            yield from four_bits(launcher, source, x)
        for target in NARROW if source in FLOATS else []:
            yield from rounded(launcher, source, target, x)


def four_bits(launcher, source, x):
    """`as e2m1`, which saturates and makes its largest value of NaN, and all its codes as another type."""
    x = np.resize(x, len(x) + len(x) % 2)
    codes = np.arange(0, 16, dtype=np.uint8).reshape(8, 2)
    pairs = codes[:, 0] | codes[:, 1] << 4
    inputs = {"x": (source, x), "codes": ("u8", pairs)}
    outputs = {"bytes": ("u8", (len(x) // 2,)), "back": (source, (16,))}
    results = launcher.run("casts.tk::packed", inputs, outputs, {"S": source})
    wide = whole_to_odd(x) if x.dtype.kind in "iu" else x.astype(np.float64)
    nan = np.isnan(wide)
    exact = np.where(nan, 7.0, wide)
    rounded = to_odd_f32(exact).astype(ml_dtypes.float4_e2m1fn).view(np.uint8)
    got = np.stack([results["bytes"] & 15, results["bytes"] >> 4], axis=1).reshape(-1)
    yield f"{source} as e2m1", same(got, rounded, x)
    values = codes.reshape(-1).view(ml_dtypes.float4_e2m1fn).astype(np.float64)
    yield f"e2m1 as {source}", same(results["back"], cast(values, source), codes.reshape(-1))


def rounded(launcher, source, target, x):
    """`cast(.., rounding = ..)` against the table of all values of the target: the largest whose size is not larger, and
    of that and the next one the one that the random bits choose."""
    bits = np.random.default_rng(11).integers(0, 1 << 32, len(x), np.uint32)
    inputs = {"x": (source, x), "bits": ("u32", bits)}
    outputs = {"zero": (target, x.shape), "random": (target, x.shape)}
    got = launcher.run("casts.tk::rounded", inputs, outputs, {"S": source, "T": target})
    wide = x.astype(np.float64)
    size = np.abs(wide)
    table = all_values(target).astype(np.float64)
    table = np.unique(table[np.isfinite(table) & (table >= 0)])
    below = np.searchsorted(table, np.nan_to_num(size, nan=0.0), side="right") - 1
    low = table[below]
    high = table[np.minimum(below + 1, len(table) - 1)]
    chosen = np.where((bits >> np.uint32(8)) * 2.0**-24 * (high - low) < size - low, high, low)
    for mode, found in (("zero", low), ("random", chosen)):
        # An infinity stays one where there is one; fp8 saturates, as `as` does.
        keep = np.isnan(wide) | (np.isinf(wide) & (target not in F8))
        expected = np.where(keep, wide, np.copysign(found, wide)).astype(DTYPES[target])
        name = {"zero": "toward zero", "random": "stochastic"}[mode]
        yield f"{source} as {target} {name}", same(got[mode], expected, x)


def values(name):
    """What is converted, in the type `name`."""
    dtype = DTYPES[name]
    if dtype.itemsize <= 2:
        return all_values(name)
    rng = np.random.default_rng(1)
    random = rng.integers(0, 1 << (8 * dtype.itemsize), RANDOM, dtype=bits_type(name)).view(dtype)
    points = interesting()
    if dtype.kind == "f":
        points = points.astype(dtype)
        special = np.array([0.0, np.inf, np.nan, np.finfo(dtype).max, np.finfo(dtype).tiny], dtype)
        subnormal = np.arange(200, dtype=bits_type(name)).view(dtype)
        near = np.concatenate([points, special, subnormal])
        up, down = np.nextafter(near, dtype.type(np.inf)), np.nextafter(near, dtype.type(0))
        near = np.concatenate([near, up, down])
        return np.concatenate([near, -near, random])
    # Whole numbers around the points, of both signs, and random ones of every length.
    whole = [int(p) for p in np.unique(points[np.isfinite(points) & (points < 2.0**65)].astype(np.float64))]
    powers = [1 << i for i in range(65)]
    near = np.array([v + d for v in whole + powers for d in (-1, 0, 1)], object)
    limits = np.iinfo(dtype)
    both = np.concatenate([near, -near])
    short = random >> rng.integers(0, 8 * dtype.itemsize, RANDOM).astype(dtype)
    fits = both[(both >= limits.min) & (both <= limits.max)].astype(dtype)
    return np.concatenate([np.unique(fits), np.array([limits.min, limits.max], dtype), random, short])


def interesting():
    """The positive values of the narrow floats, the points halfway between neighbours, and the limits of integers and
    of f32 with the points halfway to where they round, in f64. Of f16 and bf16 every 7th is taken: every exponent and
    every last bit occurs."""
    points = []
    for name in NARROW:
        table = all_values(name).astype(np.float64)
        table = np.unique(table[np.isfinite(table) & (table > 0)])
        step = 1 if name in F8 else 7
        points += [table[::step], ((table[1:] + table[:-1]) / 2)[::step]]
        # Beyond the largest: half a step, a step.
        points.append(table[-1] + (table[-1] - table[-2]) * np.array([0.5, 1.0]))
    powers = 2.0 ** np.arange(0, 66)
    points += [powers, powers - 1, powers - 0.5, powers + 0.5, powers * (1 + 2.0**-24), powers * (1 + 3 * 2.0**-24)]
    largest = float(np.finfo(np.float32).max)
    points.append(np.array([largest, largest * (1 + 2.0**-25), 2.0**-150, 2.0**-149 * 1.5, 2.0**-126]))
    return np.unique(np.concatenate(points))


def cast(x, target):
    """`x as target` by the rules of the language."""
    dtype = DTYPES[target]
    if x.dtype.kind in "iub":
        return x.astype(dtype) if target in INTS else round_to(whole_to_odd(x), x, target)
    exact = x.astype(np.float64)
    return saturate(exact, dtype) if target in INTS else round_to(exact, exact, target)


def saturate(x, dtype):
    """A float as an integer: truncated, then saturated; NaN is 0."""
    limits = np.iinfo(dtype)
    t = np.trunc(np.where(np.isnan(x), 0.0, x))
    # Both bounds are powers of two or zero, which f64 has exactly; the largest integers it has not.
    low, high = t < float(limits.min), t >= float(limits.max + 1)
    inside = np.where(low | high, 0.0, t).astype(dtype)
    return np.where(low, limits.min, np.where(high, limits.max, inside)).astype(dtype)


def round_to(wide, x, target):
    """A number as a float. `wide` is `x` in f64, rounded to odd where it does not fit. NumPy rounds f64 to f16 and f32
    once, and integers to f32 and f64; ml_dtypes goes to its types through f32, so it gets an f32 rounded to odd."""
    dtype = DTYPES[target]
    if target in ["f32", "f64"]:
        return x.astype(dtype)
    if target == "f16":
        return wide.astype(dtype)
    rounded = to_odd_f32(wide).astype(dtype)
    if target in F8:
        # The language saturates, where ml_dtypes gives an infinity or NaN; infinities saturate too, NaN stays.
        largest = np.array(max_of(target)).astype(dtype)
        beyond = ~np.isfinite(rounded) & ~np.isnan(wide)
        rounded = np.where(beyond, np.where(wide < 0, -largest, largest), rounded)
    return rounded


def max_of(name):
    table = all_values(name).astype(np.float64)
    return table[np.isfinite(table)].max()


def whole_to_odd(x):
    """An integer in f64; one of more than 53 bits is cut to these, with the last one set: no rounding behind it to at
    most 51 bits can be wrong."""
    if x.dtype.itemsize < 8:
        return x.astype(np.float64)
    magnitude = np.where(x < 0, -x.astype(object), x.astype(object)).astype(np.uint64)
    long = (magnitude >> np.uint64(53) != 0) & (magnitude & np.uint64(0x7FF) != 0)
    cut = np.where(long, (magnitude & ~np.uint64(0x7FF)) | np.uint64(0x800), magnitude)
    wide = cut.astype(np.float64)
    return np.where(x < 0, -wide, wide)


def to_odd_f32(x):
    """f64 to f32, rounded to odd: an inexact result is the neighbour whose last bit is set."""
    f = x.astype(np.float32)
    back = f.astype(np.float64)
    toward_zero = np.where(np.abs(back) > np.abs(x), np.nextafter(f, np.float32(0)), f)
    odd = (toward_zero.view(np.uint32) | np.uint32(1)).view(np.float32)
    return np.where(np.isfinite(x) & (back != x), odd, f)
