"""Numbers of several rounds, and tables of them."""

import statistics


def at(value, *names):
    """A value inside of objects; None where there is none."""
    for name in names:
        if not isinstance(value, dict):
            return None
        value = value.get(name)
    return value


def middle(sources, *names):
    """The median of a number over rounds; None if no round has it."""
    numbers = [n for n in (at(s, *names) for s in sources) if isinstance(n, (int, float))]
    return statistics.median(numbers) if numbers else None


def first(sources, *names):
    return next((v for v in (at(s, *names) for s in sources) if v is not None), None)


def ratio(a, b):
    return a / b if a is not None and b else None


def number(value, digits=3):
    return "-" if value is None else f"{value:.{digits}f}"


def print_rows(rows):
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        cells = [row[0].ljust(widths[0])] + [cell.rjust(width) for cell, width in zip(row[1:], widths[1:])]
        print("  ".join(cells).rstrip())
