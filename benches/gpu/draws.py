"""Draws cases for tk-gpu-bench and peers.py: which kernel on which shape. Equal seeds draw equal cases."""

import math
import random

FAMILIES = ("products", "ragged", "skinny", "rows", "fp8", "orders")
ORDERS = ("nn", "nt", "tn", "tt")
HALVES = ("f16", "bf16")
OPS = ("softmax", "layer_norm", "rms_norm", "log_softmax", "cross_entropy", "argmax", "sum", "mean")
# Extents of the linear layers of models with 7 to 70 billion parameters.
LAYERS = (4096, 5120, 8192, 11008, 14336)
# Operations of a product, at most: 10 ms of an H100 at its best.
OPERATIONS = 4e12
# Bytes of operands and result.
MEMORY = 8 << 30
# How often a case is drawn again that was drawn before.
TRIES = 100


def between(rng, low, high, step=1):
    """A multiple of a number, uniform on a logarithmic scale."""
    drawn = math.exp(rng.uniform(math.log(low), math.log(high)))
    return min(max(round(drawn / step) * step, low), high)


def is_prime(n):
    return n > 1 and all(n % d for d in range(2, math.isqrt(n) + 1))


def odd(rng, low, high):
    """Any extent, a prime, or a neighbour of a power of two."""
    n, kind = between(rng, low, high), rng.randrange(3)
    if kind == 1:
        while n > low and not is_prime(n):
            n -= 1
    elif kind == 2:
        n = (1 << round(math.log2(n))) + rng.choice((-1, 1))
    # 8193 and 262145 are neighbours as well.
    return min(max(n, low), high + 1)


def product(family, dtype, order, size):
    m, n, k = size
    name = f"{family}_{dtype}_{order}_{m}x{n}x{k}"
    return {"name": name, "family": family, "work": "product", "dtype": dtype, "m": m, "n": n, "k": k, "order": order, "set": {}}


def fitting(rng, draw, width, quick):
    """Three extents whose product takes neither too long nor too much memory."""
    while True:
        m, n, k = (draw(rng) for _ in range(3))
        operations, memory = 2.0 * m * n * k, width * (m * k + k * n) + 2 * m * n
        if operations <= (OPERATIONS / 16 if quick else OPERATIONS) and memory <= MEMORY:
            return m, n, k


def products(rng, quick):
    size = fitting(rng, lambda r: between(r, 256, 16384, 8), 2, quick)
    return product("products", rng.choice(HALVES), rng.choice(ORDERS), size)


def orders(rng, quick):
    return product("orders", rng.choice(HALVES), rng.choice(ORDERS), (4096,) * 3)


def skinny(rng, quick):
    size = (rng.choice((1, 4, 16, 64)), rng.choice(LAYERS), rng.choice(LAYERS))
    return product("skinny", rng.choice(HALVES), rng.choice(("nn", "nt")), size)


def ragged(rng, quick):
    size = fitting(rng, lambda r: odd(r, 100, 8192), 2, quick)
    return product("ragged", rng.choice(HALVES), rng.choice(ORDERS), size)


def fp8(rng, quick):
    size = fitting(rng, lambda r: between(r, 256, 16384, 16), 1, quick)
    # cuBLAS has the order nt only.
    return product("fp8", "f8e4m3", rng.choice(("nt",) * 7 + ("nn", "tn", "tt")), size)


def rows(rng, quick):
    op, dtype = rng.choice(OPS), rng.choice((*HALVES, "f32"))
    columns = odd(rng, 64, 262144)
    count = max(1, (1 << (25 if quick else 28)) // columns)
    name = f"{op}_{dtype}_{count}x{columns}"
    return {"name": name, "family": "rows", "work": "rows", "op": op, "dtype": dtype, "rows": count, "columns": columns, "set": {}}


DRAWS = {"products": products, "ragged": ragged, "skinny": skinny, "rows": rows, "fp8": fp8, "orders": orders}


def draw(count, seed, families=(), quick=False):
    """So many different cases, of each family in turn; fewer if the families have no more."""
    # Each family has its own numbers, so that its cases do not depend on which others are drawn.
    sources = {family: random.Random(f"{seed} {family}") for family in FAMILIES if not families or family in families}
    cases = {}
    while sources and len(cases) < count:
        for family, rng in list(sources.items()):
            drawn = (DRAWS[family](rng, quick) for _ in range(TRIES))
            fresh = next((case for case in drawn if case["name"] not in cases), None)
            if fresh is None:
                del sources[family]
            elif len(cases) < count:
                cases[fresh["name"]] = fresh
    return list(cases.values())
