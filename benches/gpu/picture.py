"""A picture of ratios over sizes, as SVG."""

import math
from xml.sax.saxutils import escape

COLORS = {
    "products": "#0072b2", "ragged": "#d55e00", "skinny": "#009e73", "rows": "#cc79a7", "fp8": "#e69f00", "orders": "#56b4e9",
}
OTHER = "#666666"
WIDTH, HEIGHT = 900, 520
LEFT, RIGHT, TOP, BOTTOM = 60, 20, 70, 55
# Larger ratios are at the upper edge.
MOST = 2.0


def ticks(low, high):
    """Powers of two from one size to another, at most about a dozen."""
    first, last = math.floor(math.log2(low)), math.ceil(math.log2(high))
    step = max(1, math.ceil((last - first) / 12))
    return [2**power for power in range(first, last + 1, step)]


def text(x, y, words, anchor="middle", more=""):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{more}>{escape(str(words))}</text>'


def line(x1, y1, x2, y2, color, width=1.0):
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{color}" stroke-width="{width}"/>'


def axes(x_of, y_of, sizes, top):
    """The grid with its numbers, a line at 1.0, and the names of the axes."""
    parts = []
    for size in ticks(*sizes):
        parts.append(line(x_of(size), TOP, x_of(size), HEIGHT - BOTTOM, "#e4e4e4"))
        parts.append(text(x_of(size), HEIGHT - BOTTOM + 18, size))
    for number in range(math.floor(top * 5 + 1e-9) + 1):
        parts.append(line(LEFT, y_of(number / 5), WIDTH - RIGHT, y_of(number / 5), "#e4e4e4"))
        parts.append(text(LEFT - 8, y_of(number / 5) + 4, f"{number / 5:.1f}", "end"))
    parts.append(line(LEFT, y_of(1.0), WIDTH - RIGHT, y_of(1.0), "#000000", 1.5))
    parts.append(text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 14, "size: cube root of m n k of a product, columns of rows"))
    middle = (TOP + HEIGHT - BOTTOM) / 2
    parts.append(text(16, middle, "ratio: products of cuBLAS, rows of a copy", more=f' transform="rotate(-90 16 {middle:.1f})"'))
    return parts


def svg(points, title):
    """The picture of points, each with `name`, `family`, `size` and `ratio`; a pointer over one shows its name."""
    points = sorted(points, key=lambda p: p["family"])
    sizes = [p["size"] for p in points] or [1, 2]
    first, last = (2.0 ** f(math.log2(edge)) for f, edge in ((math.floor, min(sizes)), (math.ceil, max(sizes))))
    last = max(last, 2 * first)
    top = min(MOST, max([1.2, *(p["ratio"] * 1.05 for p in points)]))
    x_of = lambda size: LEFT + (WIDTH - LEFT - RIGHT) * math.log(size / first) / math.log(last / first)
    y_of = lambda ratio: HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * min(ratio, top) / top
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
        text(LEFT, 24, title, "start", ' font-size="15"'),
        *axes(x_of, y_of, (first, last), top),
    ]
    for p in points:
        color = COLORS.get(p["family"], OTHER)
        circle = f'<circle cx="{x_of(p["size"]):.1f}" cy="{y_of(p["ratio"]):.1f}" r="4" fill="{color}" fill-opacity="0.75">'
        parts.append(f'{circle}<title>{escape(p["name"])}: {p["ratio"]:.3f}</title></circle>')
    for i, family in enumerate(dict.fromkeys(p["family"] for p in points)):
        parts.append(f'<circle cx="{LEFT + 6 + 110 * i}" cy="46" r="5" fill="{COLORS.get(family, OTHER)}"/>')
        parts.append(text(LEFT + 16 + 110 * i, 50, family, "start"))
    return "\n".join([*parts, "</svg>", ""])
