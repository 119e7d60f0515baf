#!/usr/bin/env python3
"""Draws the pictures of docs/how-it-works.md and of the README.

What depends on the compiler is read from its output: the layouts, offsets and stages of the kernel on the page, and
fragments of matrix instructions. `draw.py` writes the pictures next to itself, `draw.py --check` fails if one is
stale. The command is $TK, or target/debug/tk. Same compiler, same files."""

import ast
import json
import os
import re
import subprocess
import sys
import tempfile
from html import escape
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
TK = os.environ.get("TK") or str(ROOT / "target" / "debug" / "tk")
PAGE = ROOT / "docs" / "how-it-works.md"
MOST_BYTES = 30 * 1024

INK, DIM, LINE, PAPER = "#22272e", "#5b6470", "#c9ccd1", "#fbfbf8"
RED, BLUE, GREEN, ORANGE, PURPLE = "#b3261e", "#1f5fa8", "#1d7a4a", "#b25a00", "#6b3fa0"
# Eight light colors that stay apart for most kinds of color blindness when numbered, as here.
HUES = ["#cfe3f7", "#fbe0c3", "#d3ecd0", "#f3d3dc", "#e2d8f2", "#f6efb8", "#cdebea", "#e3ddd3"]
MONO = "ui-monospace,SFMono-Regular,Menlo,Consolas,DejaVu Sans Mono,monospace"
SANS = "system-ui,-apple-system,Segoe UI,Roboto,DejaVu Sans,sans-serif"


# The compiler


def tk(*args, stdin=None, at=None):
    """The standard output of the command."""
    ran = subprocess.run([TK, *args], input=stdin, cwd=at, capture_output=True, text=True)
    if ran.returncode:
        sys.exit(f"draw.py: `tk {' '.join(args)}` failed:\n{ran.stderr or ran.stdout}")
    return ran.stdout


def kernel_of_page():
    """The first kernel of the page, which its text follows."""
    found = re.search(r"^```tk\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.M | re.S)
    return found[1] if found else sys.exit("draw.py: the page has no block `tk`")


def emitted(form):
    """The aligned variant of the kernel of the page for sm_90a, in this form."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "dense.tk").write_text(kernel_of_page(), encoding="utf-8")
        tk("build", "dense.tk", "--target", "sm_90a", "--emit", form, "-o", "out", at=folder)
        (file,) = Path(folder).glob(f"out/*.aligned.*.{form}")
        return file.read_text(encoding="utf-8")


class Layout:
    """A linear layout: the coordinates that each bit of a register, lane and warp number adds."""

    def __init__(self, text):
        extents, bases = text.split(": ", 1)
        self.bits = ast.literal_eval(extents)
        parts = dict(re.findall(r"(register|lane|warp) (\[.*?\])(?=, [a-z]|$)", bases))
        self.bases = {name: ast.literal_eval(part) for name, part in parts.items()}

    def element(self, **place):
        """The coordinates of the element at a place: the XOR of the bases of the bits that are set."""
        at = [0] * len(self.bits)
        for part, number in place.items():
            for i, basis in enumerate(self.bases[part]):
                if number >> i & 1:
                    at = [a ^ b for a, b in zip(at, basis)]
        return tuple(at)

    def owners(self):
        """For each element its warp, lane and register."""
        size = {part: 1 << len(self.bases[part]) for part in ("warp", "lane", "register")}
        places = [(w, l, r) for w in range(size["warp"]) for l in range(size["lane"]) for r in range(size["register"])]
        return {self.element(warp=w, lane=l, register=r): (w, l, r) for w, l, r in reversed(places)}


def measured(layout, shape, dtype):
    """What `tk layout` says of a layout."""
    return json.loads(tk("layout", layout, shape, "--dtype", dtype, "--message-format", "json"))


# SVG


class Picture:
    def __init__(self, width, height, title, desc):
        self.head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
            f'role="img" aria-labelledby="t d" font-family="{SANS}" font-size="13" fill="{INK}">\n'
            f'<title id="t">{escape(title)}</title>\n<desc id="d">{escape(desc)}</desc>\n'
            f"<style>.m{{font-family:{MONO};white-space:pre}}.s{{font-size:11px}}.d{{fill:{DIM}}}.b{{font-weight:600}}"
            f".c{{text-anchor:middle}}.e{{text-anchor:end}}</style>\n"
        )
        self.parts = []
        self.rect(0.5, 0.5, width - 1, height - 1, PAPER, LINE, rx=10)

    def rect(self, x, y, w, h, fill="none", stroke=None, **more):
        stroke = f' stroke="{stroke}"' if stroke else ""
        extra = "".join(f' {k.replace("_", "-")}="{num(v)}"' for k, v in more.items())
        self.parts.append(
            f'<rect x="{num(x)}" y="{num(y)}" width="{num(w)}" height="{num(h)}" fill="{fill}"{stroke}{extra}/>'
        )

    def text(self, x, y, text, classes="", **more):
        extra = "".join(f' {k.replace("_", "-")}="{num(v)}"' for k, v in more.items())
        classes = f' class="{classes}"' if classes else ""
        self.parts.append(f'<text x="{num(x)}" y="{num(y)}"{classes}{extra}>{escape(text, quote=False)}</text>')

    def path(self, d, stroke=INK, fill="none", **more):
        extra = "".join(f' {k.replace("_", "-")}="{num(v)}"' for k, v in more.items())
        self.parts.append(f'<path d="{d}" fill="{fill}" stroke="{stroke}"{extra}/>')

    def boxes(self, boxes, fill, stroke="#fff"):
        """Boxes of one color as one path."""
        self.path("".join(f"M{num(x)} {num(y)}h{num(w)}v{num(h)}h{num(-w)}z" for x, y, w, h in boxes), stroke, fill)

    def arrow(self, x0, y0, x1, y1, stroke=DIM):
        """A line with a head; along an axis."""
        dx, dy = (x1 > x0) - (x1 < x0), (y1 > y0) - (y1 < y0)
        head = f"M{num(x1 - 6 * dx - 4 * dy)} {num(y1 - 6 * dy - 4 * dx)}L{num(x1)} {num(y1)}"
        head += f"L{num(x1 - 6 * dx + 4 * dy)} {num(y1 - 6 * dy + 4 * dx)}"
        self.path(f"M{num(x0)} {num(y0)}L{num(x1)} {num(y1)}{head}", stroke, stroke_width=1.5)

    def svg(self):
        return self.head + "\n".join(self.parts) + "\n</svg>\n"


def num(v):
    return f"{v:.2f}".rstrip("0").rstrip(".") if isinstance(v, float) else str(v)


# The pictures


def stages():
    """The forms of a kernel, with the command that prints each. Drawn, not computed."""
    p = Picture(
        800, 556, "The stages of a compilation",
        "Source becomes a tree, a typed program, tile IR, laid-out IR, scheduled IR, LLVM IR and machine code. "
        "The interpreter runs tile IR; a simulated target runs LLVM IR on the host.",
    )
    rows = [
        ("source", "text of a .tk file", "", "lang/syntax"),
        ("tree", "tokens, bracket repair, grammar", "tk check --emit ast", "lang/syntax"),
        ("HIR", "names, types, symbolic shapes; still generic", "tk check --emit hir", "lang/sema"),
        ("tile IR", "one specialization: SSA, whole tiles as values", "tk check --emit tile", "lang/tile"),
        ("laid-out IR", "which thread owns each element", "tk build --emit layout", "codegen/gpu"),
        ("scheduled IR", "shared memory, pipelines, barriers", "tk build --emit sched", "codegen/gpu"),
        ("LLVM IR", "one function that every thread runs", "tk build --emit llvm", "codegen/llvm"),
        ("PTX, AMD assembly", "instructions", "tk build --emit ptx, gcn", "codegen/driver"),
        ("cubin, code object", "ptxas; LLVM and ld.lld", "tk build --emit cubin, hsaco", "codegen/driver"),
    ]
    arrows = ["parse", "check", "specialize", "assign_layouts", "schedule, verify", "emit", "LLVM", "assemble"]
    for i, (name, what, command, crate) in enumerate(rows):
        y = 18 + 59 * i
        color = HUES[0] if i < 3 else HUES[2] if i == 3 else HUES[4] if i < 6 else HUES[1]
        p.rect(20, y, 300, 38, color, LINE, rx=6)
        p.text(32, y + 17, name, "b")
        p.text(32, y + 31, what, "s d")
        p.text(308, y + 17, crate, "m s e d")
        p.text(590, y + 23, command or "print it with:", "m s" if command else "s d")
        if i < len(arrows):
            p.arrow(60, y + 39, 60, y + 57)
            p.text(72, y + 53, arrows[i], "s d")
    for i, name, lines in [
        (3, "interpreter", ["the CPU device, and the", "definition of the meaning"]),
        (6, "simulator", ["its own target: every lane", "is a fiber on the host"]),
    ]:
        y = 18 + 59 * i
        p.rect(376, y - 8, 190, 54, "#fff", LINE, rx=6)
        p.text(388, y + 9, name, "b")
        for j, line in enumerate(lines):
            p.text(388, y + 24 + 14 * j, line, "s d")
        p.arrow(321, y + 19, 374, y + 19)
    return p.svg()


def bit_row(p, x, y, layout, names):
    """The bits of an element's coordinates, each with the bit of the place that provides it."""
    at = x
    colors = {"register": HUES[5], "lane": HUES[0], "warp": HUES[3]}
    for d, name in enumerate(names):
        p.text(at, y - 6, f"{name} bits {layout.bits[d] - 1} .. 0", "s d")
        for bit in reversed(range(layout.bits[d])):
            unit = [0] * len(names)
            unit[d] = 1 << bit
            for part, bases in layout.bases.items():
                if unit in bases:
                    p.rect(at, y, 38, 24, colors[part], LINE)
                    p.text(at + 19, y + 16, f"{part[0]}{bases.index(unit)}", "m s c")
            at += 38
        at += 22
    p.text(x, y + 42, "r: bit of the register number   l: of the lane   w: of the warp", "m s d")


def ownership():
    """Which thread loads which elements of the tile of `x`: its first 16 rows."""
    text = emitted("layout")
    name = re.search(r"view_load v0, .*@(l\d+)", text)[1]
    layout = Layout(re.search(rf"^layout {name} = (.*)$", text, re.M)[1])
    rows, columns, w, h = 16, 1 << layout.bits[1], 10, 17
    p = Picture(
        820, 432, "Which thread owns each element of a blocked tile",
        f"The first {rows} rows of a tile of {1 << layout.bits[0]} x {columns} f16. Each lane owns 8 neighbours of a row, "
        "8 lanes a row, 4 rows make a warp. Below: which bit of the place provides which bit of the coordinates.",
    )
    p.text(20, 28, f"x.load(..): tile[f16, {1 << layout.bits[0]}, {columns}], the first {rows} rows", "b")
    p.text(20, 45, "a box is one lane: 8 neighbours, one access of 16 bytes", "s d")
    owners, x0, y0 = layout.owners(), 20, 56
    per = 1
    while owners[0, per][:2] == owners[0, 0][:2]:
        per += 1
    boxes, labels = {}, []
    for row in range(rows):
        for column in range(0, columns, per):
            warp, lane, _register = owners[row, column]
            boxes.setdefault(warp, []).append((x0 + column * w, y0 + row * h, per * w, h))
            labels.append((x0 + (column + per / 2) * w, y0 + row * h + 12, row, column, warp, lane))
    for warp, found in boxes.items():
        p.boxes(found, HUES[warp], "#8a929c")
        lowest = min(y for _x, y, _w, _h in found)
        p.text(x0 + columns * w + 12, lowest + 2 * h + 4, f"warp {warp}", "b")
        p.text(x0 + columns * w + 12, lowest + 2 * h + 20, "32 lanes", "s d")
    for x, y, row, column, warp, lane in labels:
        if (warp, lane) == (0, 9):
            p.rect(x - per * w / 2, y - 12, per * w, h, "#fff", RED, stroke_width=2)
            for i in range(per):
                _w, _l, register = owners[row, column + i]
                p.text(x - per * w / 2 + (i + 0.5) * w, y - 1, str(register), "m c", font_size=9, fill=RED)
        elif warp == 0:
            p.text(x, y, f"lane {lane}", "s c")
    p.text(x0, y0 + rows * h + 16, f"red: lane 9 of warp 0 with its registers 0 to {per - 1}. Rows {rows} to "
           f"{(1 << layout.bits[0]) - 1} repeat the picture in registers {per} and up.", "s d")
    bit_row(p, x0, y0 + rows * h + 52, layout, ["row", "column"])
    return p.svg()


def fragment(p, layout, x, y, w, h, lane):
    """A fragment, colored by groups of four lanes. A box is two neighbours that one lane owns; one lane has its registers."""
    rows, columns = (1 << b for b in layout.bits)
    across = layout.bases["register"][0] == [0, 1]
    boxes, labels, owners = {}, [], layout.owners()
    for row in range(0, rows, 1 if across else 2):
        for column in range(0, columns, 2 if across else 1):
            _warp, owner, _register = owners[row, column]
            box = (x + column * w, y + row * h, w * (1 + across), h * (2 - across))
            boxes.setdefault(owner >> 2, []).append(box)
            if owner != lane:
                labels.append((box[0] + box[2] / 2, box[1] + box[3] / 2 + 3.5, str(owner)))
    for group, found in sorted(boxes.items()):
        p.boxes(found, HUES[group])
    for cx, cy, label in labels:
        p.text(cx, cy, label, "c", font_size=10)
    for (row, column), (_warp, owner, register) in sorted(owners.items()):
        if owner == lane:
            p.rect(x + column * w, y + row * h, w, h, "#fff", RED)
            p.text(x + column * w + w / 2, y + row * h + h - 4.5, f"r{register}", "m c", font_size=9, fill=RED)
    p.rect(x, y, columns * w, rows * h, "none", "#8a929c")


def mma():
    """The fragments of mma.sync m16n8k16."""
    a, b, c = (
        Layout(measured(f"{operand}(m16n8k16, 1)", shape, dtype)["layout"])
        for operand, shape, dtype in [("a", "16x16", "f16"), ("b", "16x8", "f16"), ("acc", "16x8", "f32")]
    )
    w, h, lane = 22, 16, 5
    p = Picture(
        600, 640, "Fragments of the matrix instruction m16n8k16",
        "The left operand A of 16 x 16, the right operand B of 16 x 8 and the accumulator of 16 x 8. Each element has the "
        "number of the lane that owns it; the registers of lane 5 are marked.",
    )
    ax, bx, by, cy = 24, 400, 44, 344
    p.text(ax, 28, "m16n8k16: which lane owns each element", "b")
    lines = [
        "a box is two elements, its number their lane;", "one color: four lanes, which hold one row of A",
        "and of the accumulator, and one column of B", "", f"red: the elements of lane {lane}, numbered", "",
        "the accumulator, bit by bit:",
    ]
    for i, line in enumerate(lines):
        p.text(ax, 52 + 18 * i, line, "s" if i < len(lines) - 1 else "s d")
    for i, (part, bases) in enumerate(c.bases.items()):
        for j, basis in enumerate(bases):
            p.text(ax + 12, 184 + 15 * (j + 2 * i), f"{part} bit {j} -> row {basis[0]}, column {basis[1]}", "m s")
    p.text(bx, by - 10, "B: K x N = 16 x 8", "s b")
    fragment(p, b, bx, by, w, h, lane)
    p.text(ax, cy - 10, "A: M x K = 16 x 16", "s b")
    fragment(p, a, ax, cy, w, h, lane)
    p.text(bx, cy - 10, "accumulator: M x N", "s b")
    fragment(p, c, bx, cy, w, h, lane)
    p.text(ax, 626, "Two f16 that are neighbours along K share a 32-bit register; the accumulator has f32.", "s d")
    return p.svg()


def bank_panel(p, x, y, offsets, title, verdict, chunk):
    """Eight rows of 128 bytes, each chunk of 16 bytes in its four banks; `chunk` is the one that is read."""
    w, h = 44, 24
    p.text(x, y - 34, title, "b")
    busy = [0] * 8
    for group in range(8):
        p.text(x + group * w + w / 2, y - 8, f"{4 * group}-{4 * group + 3}", "m c d", font_size=10)
    reads = []
    for row in range(8):
        for c in range(8):
            offset = offsets(row, 8 * c)
            line, group = offset // 64, offset % 64 // 8
            box = (x + group * w, y + line * h, w, h)
            p.rect(*box, HUES[c], "#fff")
            if c == chunk:
                busy[group] += 1
                reads.append(box)
            p.text(box[0] + w / 2, box[1] + 16, f"k{8 * c}", "m c", font_size=10, **({"fill": DIM} if c != chunk else {}))
    for box in reads:
        p.rect(*box, "none", RED, stroke_width=2.5)
    p.text(x - 8, y + 16, "row 0", "s e d")
    p.text(x - 8, y + 7 * h + 16, "row 7", "s e d")
    p.text(x, y + 8 * h + 20, "rows read in these banks:", "s d")
    for group, n in enumerate(busy):
        p.text(x + group * w + w / 2, y + 8 * h + 38, str(n), "m c" + (" b" if n > 1 else ""), fill=RED if n > 1 else INK)
    p.text(x, y + 8 * h + 62, verdict, "b", fill=RED if max(busy) > 1 else GREEN)
    return max(busy)


def banks():
    """Banks of a column of chunks of the operand `x` in shared memory: row-major, and as the kernel has it."""
    text = emitted("sched")
    bases = ast.literal_eval(re.search(r"a_bases = (\[.*?\])", text)[1])
    row_bits, column_bits = 7, 6

    def swizzled(row, column):
        at = 0
        for i in range(row_bits):
            at ^= bases[i] if row >> i & 1 else 0
        for i in range(column_bits):
            at ^= bases[row_bits + i] if column >> i & 1 else 0
        return at

    # Eight lanes that read 16 bytes each of eight rows, as ldmatrix and wgmma do.
    lanes = "[3, 6]: register [[0, 1], [0, 2], [0, 4]], lane [[1, 0], [2, 0], [4, 0], [0, 8], [0, 16]], warp [[0, 32]]"
    ways = measured(lanes, "8x64", "f16")
    p = Picture(
        860, 392, "Bank conflicts of a column read, without and with a swizzle",
        "Eight rows of 64 f16 in shared memory. In row-major order one chunk of 16 bytes of all eight rows is in the same "
        "four banks; with the swizzle each is in other banks.",
    )
    p.text(20, 28, "Eight rows of x in shared memory: 128 bytes each, one row across all 32 banks", "b")
    p.text(20, 46, "a box is 16 bytes: 8 elements along K, in 4 banks (numbers above). Red: what is read at once, k16 to k23 of 8 rows",
           "s d")
    cycles = lambda n: "1 cycle: no conflict" if n == 1 else f"{n} cycles: {n}-way bank conflict"
    plain = bank_panel(p, 64, 112, lambda r, c: 64 * r + c, "row-major", cycles(ways["row_major_ways"]), 2)
    first = bases[:3]
    mixed = bank_panel(p, 488, 112, swizzled, f"swizzled: row bits add {', '.join(map(str, first))}",
                       cycles(ways["swizzled_ways"]), 2)
    if (plain, mixed) != (ways["row_major_ways"], ways["swizzled_ways"]):
        sys.exit(f"draw.py: {plain} and {mixed} conflicts drawn, `tk layout` counts {ways}")
    return p.svg()


def schedule(count, depth, latency):
    """A model of a TMA pipeline, in units of one product: for each iteration when its load is issued and its stage is
    full, when its product runs, and when the stage is released. A load takes `latency`, and one unit of bandwidth."""
    issue, full, start, end, release = [], [], [], [], []
    for i in range(count):
        issue.append(max(issue[-1] + 0.35 if i else 0.0, release[i - depth] if i >= depth else 0.0))
        full.append(max(issue[i] + latency, full[-1] + 1.0 if i else 0.0))
        start.append(max(full[i], end[-1] if i else 0.0))
        end.append(start[i] + 1.0)
        # One product stays in flight: product i - 1 is waited for after product i was issued.
        if i:
            release.append(max(end[i - 1], full[i]))
    release.append(end[-1])
    return issue, full, start, end, release


def timeline():
    """A schematic of the loop: producer warp, stages, tensor cores."""
    depth = int(re.search(r"producer_acquire \{.*pipeline_stages = (\d+)", emitted("sched"))[1])
    count, latency = 9, 2.6
    issue, full, start, end, release = schedule(count, depth, latency)
    unit, x0, row = 52.0, 150, 30
    p = Picture(
        860, 106 + row * (depth + 2) + 46, "A warp-specialized loop with a TMA pipeline, as a schematic",
        f"A producer warp starts TMA loads into {depth} stages; consumer warps multiply the oldest full stage and release "
        "it, and the producer fills it again. Times are schematic.",
    )
    p.text(20, 28, f"The loop of dense on sm_90a: one producer warp, {depth} stages, four consumer warps", "b")
    p.text(20, 46, "schematic: order and dependences are those of the kernel, lengths are made up", "s", fill=RED)
    at = lambda t: x0 + unit * t
    y = 74
    p.text(20, y + 16, "producer warp")
    for i in range(count):
        p.rect(at(issue[i]), y, 15, 20, HUES[i % len(HUES)], INK, stroke_width=0.7)
        p.text(at(issue[i]) + 7.5, y + 14, str(i), "c", font_size=10)
    p.text(at(issue[depth - 1]) + 24, y + 14, "no free stage", "s d")
    for s in range(depth):
        top = y + row * (s + 1) + 8
        p.text(20, top + 15, f"stage {s}")
        p.path(f"M{x0} {num(top + 20)}H840", LINE)
        for i in range(s, count, depth):
            p.rect(at(issue[i]), top, unit * (full[i] - issue[i]), 20, "#fff", "#8a929c", stroke_dasharray="3 2")
            p.text(at(issue[i]) + 6, top + 14, f"TMA load {i}", "s d")
            p.rect(at(full[i]), top, unit * (release[i] - full[i]), 20, HUES[i % len(HUES)], "#8a929c")
            if unit * (release[i] - full[i]) > 30:
                p.text(at(full[i]) + 5, top + 14, f"full {i}", "s")
    top = y + row * (depth + 1) + 8
    p.text(20, top + 15, "tensor cores")
    for i in range(count):
        p.rect(at(start[i]), top, unit, 20, HUES[i % len(HUES)], INK, stroke_width=0.7)
        p.text(at(start[i]) + unit / 2, top + 14, f"mma {i}", "s c")
    # The stage of product 0, released and filled again.
    first = y + row + 8
    p.path(f"M{num(at(release[0]))} {first - 2}V{y + 24}", RED, stroke_width=1.5)
    p.path(f"M{num(at(release[0]) - 4)} {y + 30}L{num(at(release[0]))} {y + 23}L{num(at(release[0]) + 4)} {y + 30}", RED,
           stroke_width=1.5)
    p.text(at(release[0]) + 8, y + 33, "consumer_release of stage 0", "s", fill=RED)
    y = top + 46
    p.text(20, y, "full:", "s b")
    p.text(60, y, "an mbarrier counts the bytes that TMA has written: consumer_wait", "s")
    p.text(20, y + 18, "released:", "s b")
    p.text(84, y + 18, "a second mbarrier counts the arrivals of four warps: producer_acquire. "
           "Product i - 1 is waited for after product i is issued.", "s")
    return p.svg()


SOURCE = """\
kernel matmul[BM: i32 = 64, BN: i32 = 64, BK: i32 = 32](
    a: view[f16, 2], b: view[f16, 2], c: mut view[f16, 2],
)
    grid(cdiv(c.shape[0], BM), cdiv(c.shape[1], BN))
    require(a.shape[1] == b.shape[0])
{
    let i = program_id(0) * BM;
    let j = program_id(1) * BN;
    let mut acc = zeros([BM, BN], f32);
    for k in range(0, a.shape[1], BK) {
        let x = a.load([i, k], [BM, BK]);
        let y = b.load([k, j], [BK, BN]);
        acc = dot(x, y, acc);
    }
    c.store([i, j], acc as f16);
}
"""


def tile_shapes():
    """The shapes of the tiles that the kernel of the README loads and stores, from its tile IR."""
    text = tk("check", "-", "--emit", "tile", stdin=SOURCE)
    loads = re.findall(r"view_load v\d+.*tile\[f16, (\d+), (\d+)\]", text)
    (store,) = re.findall(r"cast .*tile\[f16, (\d+), (\d+)\]", text)
    return [tuple(map(int, shape)) for shape in (*loads, store)]


def array(p, x, y, scale, extents, tile, at, color, name, along=None):
    """A matrix with its tiles, one of them marked, and those `along` an axis that other iterations read. What is outside of
    the matrix is hatched."""
    (rows, columns), (row, column) = extents, at
    p.text(x, y - 8, name, "b", fill=color)
    p.text(x + 12, y - 8, f"{rows} x {columns}", "s d")
    p.rect(x, y, columns * scale, rows * scale, "#fff", INK)
    inside = [min(at[d] + tile[d], extents[d]) - at[d] for d in (0, 1)]
    if along == 1:
        p.rect(x, y + row * scale, columns * scale, inside[0] * scale, color, fill_opacity=0.12)
    if along == 0:
        p.rect(x + column * scale, y, inside[1] * scale, rows * scale, color, fill_opacity=0.12)
    lines = "".join(f"M{num(x)} {num(y + r * scale)}h{num(columns * scale)}" for r in range(tile[0], rows, tile[0]))
    lines += "".join(f"M{num(x + c * scale)} {num(y)}v{num(rows * scale)}" for c in range(tile[1], columns, tile[1]))
    p.path(lines, LINE)
    tx, ty = x + column * scale, y + row * scale
    if inside[0] < tile[0]:
        out = (tile[0] - inside[0]) * scale
        p.rect(tx, ty + inside[0] * scale, tile[1] * scale, out, "url(#h)", color, stroke_dasharray="3 2")
    p.rect(tx, ty, inside[1] * scale, inside[0] * scale, color, color, fill_opacity=0.55)


def kernel():
    """A kernel, and the tiles that one of its programs reads and writes."""
    of_a, of_b, of_c = tile_shapes()
    tk("check", "-", stdin=SOURCE)
    m, n, k, scale = 150, 170, 100, 1.15
    program, step = (2, 1), 1
    row, column, depth = program[0] * of_c[0], program[1] * of_c[1], step * of_a[1]
    p = Picture(
        860, 440, "A kernel and the tiles of one of its programs",
        f"Left: the source of a matrix product. Right: program ({program[0]}, {program[1]}) of its grid reads tiles of a and b "
        "in each iteration and writes one tile of c; elements outside of the matrices are masked.",
    )
    p.parts.append(
        f'<defs><pattern id="h" width="5" height="5" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
        f'<path d="M0 0V5" stroke="{DIM}" stroke-width="1"/></pattern></defs>'
    )
    marks = [("a.load([i, k], [BM, BK])", BLUE), ("b.load([k, j], [BK, BN])", GREEN), ("c.store([i, j], acc as f16)", ORANGE)]
    for i, line in enumerate(SOURCE.splitlines()):
        spans = escape(line, quote=False)
        for mark, color in marks:
            spans = spans.replace(mark, f'<tspan fill="{color}" font-weight="600">{mark}</tspan>')
        spans = re.sub(r"\b(kernel|let mut|let|for|in|mut view|grid|require)\b(?![^<]*>)", rf'<tspan fill="{PURPLE}">\1</tspan>', spans)
        p.parts.append(f'<text x="20" y="{num(40 + 19 * i)}" class="m" font-size="12" xml:space="preserve">{spans}</text>')
    ax, by = 496, 44
    bx, ay = ax + k * scale + 22, by + k * scale + 36
    array(p, ax, ay, scale, (m, k), of_a, (row, depth), BLUE, "a", along=1)
    array(p, bx, by, scale, (k, n), of_b, (depth, column), GREEN, "b", along=0)
    array(p, bx, ay, scale, (m, n), of_c, (row, column), ORANGE, "c")
    programs = [-(-m // of_c[0]), -(-n // of_c[1])]
    notes = [
        f"{programs[0]} x {programs[1]} programs; drawn: program ({program[0]}, {program[1]}) at k = {depth}",
        "light: tiles of its other iterations",
        "hatched: outside of the matrix; loaded as 0, not stored, no mask in the source",
    ]
    for i, note in enumerate(notes):
        p.text(20, 382 + 17 * i, note, "s d")
    return p.svg()


PICTURES = {"stages": stages, "ownership": ownership, "mma": mma, "banks": banks, "timeline": timeline, "kernel": kernel}


def main():
    if sys.argv[1:] not in ([], ["--check"]):
        sys.exit(__doc__)
    stale = []
    for name, draw in PICTURES.items():
        file, svg = HERE / f"{name}.svg", draw()
        if len(svg.encode()) > MOST_BYTES:
            sys.exit(f"draw.py: {file.name} has {len(svg.encode())} bytes, more than {MOST_BYTES}")
        if file.exists() and file.read_text(encoding="utf-8") == svg:
            continue
        stale.append(file.name)
        if not sys.argv[1:]:
            file.write_text(svg, encoding="utf-8")
    if sys.argv[1:] and stale:
        sys.exit(f"draw.py: stale: {', '.join(stale)}; run docs/images/draw.py")
    print(f"{len(PICTURES)} pictures, {len(stale)} written" if not sys.argv[1:] else f"{len(PICTURES)} pictures are up to date")


if __name__ == "__main__":
    main()
