#!/usr/bin/env python3
"""Draws a trace as a picture: the kernels of one step on a line of time, and the time of each kind.

    python3 picture.py TRACE.json OUT.svg [--title TEXT]

Owns the drawing. Assumes the trace that `tk-transformer .. --trace` writes. Guarantees the same picture for the same
trace. The line is broken into rows of equal time, because a step has more kernels than a row has room for.
"""

import argparse
import html
import json
import pathlib

WIDTH, LEFT, ROW, BAR = 960, 60, 34, 22
ROWS = 6
COLORS = ["#4269d0", "#efb118", "#ff725c", "#6cc5b0", "#3ca951", "#a463f2", "#9c6b4e", "#9498a0"]


def text(x, y, what, anchor="start", size=13):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}">{html.escape(what)}</text>'


def pieces(event, row_us):
    """A span as parts that do not cross the end of a row: row, start, length."""
    start, left = event["ts"], event["dur"]
    while left > 0:
        row = int(start // row_us)
        part = min(left, (row + 1) * row_us - start)
        if part <= 1e-9:
            part = left
        yield row, start - row * row_us, part
        start, left = start + part, left - part


def draw(events, title):
    names = list(dict.fromkeys(event["name"] for event in events))
    color = {name: COLORS[i % len(COLORS)] for i, name in enumerate(names)}
    total = max(event["ts"] + event["dur"] for event in events)
    row_us = total / ROWS * (1 + 1e-9)
    scale = (WIDTH - LEFT - 10) / row_us
    out = [text(10, 22, title, size=15)]
    for row in range(ROWS):
        out.append(text(LEFT - 8, 40 + row * ROW + 16, f"{row * row_us:.0f} us", "end", 11))
    for event in events:
        for row, start, length in pieces(event, row_us):
            x, y = LEFT + start * scale, 40 + row * ROW
            out.append(
                f'<rect x="{x:.2f}" y="{y}" width="{max(length * scale - 0.5, 0.5):.2f}" height="{BAR}" '
                f'fill="{color[event["name"]]}"><title>{html.escape(event["name"])}: {event["dur"]:.1f} us</title></rect>'
            )
    y = 40 + ROWS * ROW + 20
    for name in names:
        own = [event["dur"] for event in events if event["name"] == name]
        out.append(f'<rect x="{LEFT}" y="{y - 11}" width="14" height="14" fill="{color[name]}"/>')
        out.append(text(LEFT + 22, y, name))
        out.append(text(LEFT + 260, y, f"{len(own)} times", "end"))
        out.append(text(LEFT + 380, y, f"{sum(own) / len(own):.1f} us each", "end"))
        out.append(text(LEFT + 500, y, f"{sum(own):.0f} us", "end"))
        out.append(text(LEFT + 570, y, f"{100 * sum(own) / total:.0f} %", "end"))
        y += 20
    body = "\n".join(out)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{y}" font-family="sans-serif">\n'
        f'<rect width="100%" height="100%" fill="white"/>\n{body}\n</svg>\n'
    )


def main():
    parser = argparse.ArgumentParser(description="Draws a trace as a picture.")
    parser.add_argument("trace", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--title", default="The kernels of one step")
    args = parser.parse_args()
    events = json.loads(args.trace.read_text())["traceEvents"]
    args.out.write_text(draw(events, args.title))


if __name__ == "__main__":
    main()
