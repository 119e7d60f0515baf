"""Measures many cases and shows where this project is slow: `run --random N` and `run --cases FILE`."""

import json
import shutil
import sys
import tempfile
from pathlib import Path

import draws
import picture
import turns
from tables import at, first, middle, number, print_rows, ratio

# How often tk-gpu-bench is started for the cases that an end before the last has left out.
STARTS = 6
# Seconds that a program may take for a case, the compilation included; what is short for one is long for another.
EACH = 5
# The worst cases of a family that are shown.
SHOWN = 5
# The parts of the cases of a family that a ratio is at least as bad as.
PARTS = {"worst": 0.0, "5 %": 0.05, "25 %": 0.25, "median": 0.5, "best": 1.0}
# Whom a ratio compares with; the first that a case has is the one that counts.
PRODUCTS = {"of_torch": "cuBLAS", "of_torch_fast": "cuBLAS fast", "of_triton": "Triton"}
ROWS = {"of_copy": "copy", "of_torch": "torch", "of_compiled": "torch.compile", "of_triton": "Triton"}


def cases_of(args):
    """The cases that the arguments ask for."""
    if args.cases:
        try:
            cases = json.loads(args.cases.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            turns.stop(1, f"cannot read {args.cases}: {error}")
        if not isinstance(cases, list) or not all(isinstance(at(case, "name"), str) for case in cases):
            turns.stop(1, f"{args.cases} is no list of objects with a `name`")
    else:
        cases = draws.draw(args.random, args.seed, args.family, args.quick)
    if args.only:
        cases = [case for case in cases if any(only in case["name"] for only in args.only)]
    if not cases:
        turns.stop(1, "there is no such case")
    if len({case["name"] for case in cases}) < len(cases):
        turns.stop(1, "two cases have one name")
    return cases


def written(cases, path):
    path.write_text(json.dumps(cases, indent=1) + "\n", encoding="utf-8")
    return str(path)


def measure_ours(cases, folder, label, variables, more):
    """The results of tk-gpu-bench, and what went wrong. A case that ends the program leaves the others: they are measured by
    another start, which compiles each kernel only when it is needed, so that it is known which one fails."""
    results, failures, threads = {"cases": {}}, [], []
    for start in range(STARTS):
        out = folder / f"ours-{label}-{start}.json"
        command = [*turns.ours(out), "--cases", written(cases, folder / "rest.json"), *threads, *more]
        failure = turns.start("tk-gpu-bench", command, variables, max(turns.LIMIT, EACH * len(cases)))
        part = turns.read(out)
        found = part.pop("cases", {})
        results = part | results
        results["cases"].update(found)
        cases = [case for case in cases if case["name"] not in found]
        if failure:
            failures.append(failure)
        if not cases or not failure or (threads and not found):
            break
        threads = ["--threads", "0"]
    return results, failures


def measure(args, cases, folder):
    """The results of all rounds, a pair for each, and what went wrong."""
    variables, rounds, failures = turns.environment(folder), [], []
    common = ["--elements", str(args.elements)] if args.elements else []
    options = [option for option, given in (("--compile", args.compile), ("--triton", args.triton)) if given]
    for count in range(args.rounds or (1 if args.quick else 2)):
        label = f"round {count + 1}"
        print(f"{label}: tk-gpu-bench, {len(cases)} cases ..", file=sys.stderr, flush=True)
        ours, wrong = measure_ours(cases, folder, count, variables, common)
        peers = {}
        if not args.ours_only:
            out = folder / f"peers-{count}.json"
            command = [*turns.peers(out), "--cases", written(cases, folder / "cases.json"), *common, *options]
            print(f"{label}: peers.py ..", file=sys.stderr, flush=True)
            failure = turns.start("peers.py", command, variables, max(turns.LIMIT, EACH * len(cases)))
            wrong += [failure] if failure else []
            peers = turns.read(out)
        failures += [f"{label}: {failure}" for failure in wrong]
        rounds.append((ours, peers))
        # What fails once fails again.
        cases = [case for case in cases if not at(ours, "cases", case["name"], "error")]
        if not cases:
            break
    return rounds, failures


def size(case):
    """The extent of a product that is a cube with as many operations; the columns of a row."""
    if case.get("work") == "product":
        return (case["m"] * case["n"] * case["k"]) ** (1 / 3)
    return case.get("columns", 1)


def merge_case(case, ours, peers, copy):
    name, is_product = case["name"], case.get("work") == "product"
    unit = "TFLOPs" if is_product else "TBps"
    row = {"family": case.get("family") or case.get("work") or "cases", "case": case, "unit": unit, "ms": middle(ours, "cases", name, "ms")}
    row["tk"] = middle(ours, "cases", name, unit)
    for peer in ("torch", "torch_fast", "compiled", "triton"):
        row[peer] = middle(peers, "cases", name, peer, unit)
        row[f"of_{peer}"] = ratio(row["tk"], row[peer])
    row["of_copy"] = None if is_product else ratio(row["tk"], copy)
    row["ratio"] = row["of_torch"] if is_product else row["of_copy"]
    row["error"] = first(ours, "cases", name, "error")
    if row["error"] is None and not any(at(source, "cases", name) for source in ours):
        row["error"] = f"{name}: it was not measured"
    row["torch_error"] = first(peers, "cases", name, "error") or first(peers, "cases", name, "torch", "error")
    row["torch_missing"] = first(peers, "cases", name, "missing")
    return row


def quantile(ordered, part):
    """A value that this part of some is below, between two of them."""
    place = part * (len(ordered) - 1)
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


def distributions(rows):
    """For each family and each of its ratios: how many cases have it, and its distribution."""
    families = {}
    for family in dict.fromkeys(row["family"] for row in rows.values()):
        own = [row for row in rows.values() if row["family"] == family]
        ratios = PRODUCTS if own[0]["case"].get("work") == "product" else ROWS
        for key in ratios:
            ordered = sorted(row[key] for row in own if row[key] is not None)
            if ordered:
                parts = {name: quantile(ordered, part) for name, part in PARTS.items()}
                families.setdefault(family, {})[key] = {"cases": len(ordered), **parts}
    return families


def merge(cases, rounds):
    """One object of the results of all rounds: medians, ratios, distributions."""
    ours, peers = [a for a, _ in rounds], [b for _, b in rounds]
    copies = {"tk_TBps": middle(ours, "copy", "TBps"), "torch_TBps": middle(peers, "copy", "TBps")}
    copy = max((c for c in copies.values() if c), default=None)
    rows = {case["name"]: merge_case(case, ours, peers, copy) for case in cases}
    return {
        "device": first(ours, "device"),
        "versions": {name: first(peers, name) for name in ("torch", "triton")},
        "rounds": len(rounds),
        "copy": copies | {"TBps": copy, "error": first(ours, "copy", "error")},
        "families": distributions(rows),
        "cases": rows,
        "raw": [{"ours": a, "peers": b} for a, b in rounds],
    }


def speeds(rows):
    """A table of cases: speed and ratios."""
    table = [["", "tk", "", "torch", "ratio", "tk/torch", "ms"]]
    for name, row in rows:
        unit = "TFLOP/s" if row["unit"] == "TFLOPs" else "TB/s"
        digits = 1 if row["unit"] == "TFLOPs" else 3
        table.append([
            name, number(row["tk"], digits), unit, number(row["torch"], digits), number(row["ratio"]), number(row["of_torch"]),
            number(row["ms"], 4),
        ])
    print_rows(table)


def print_distributions(merged):
    products = {row["family"] for row in merged["cases"].values() if row["unit"] == "TFLOPs"}
    table = [["ratio", "of", "cases", *PARTS]]
    for family, ratios in merged["families"].items():
        for key, found in ratios.items():
            whom = PRODUCTS if family in products else ROWS
            table.append([family, whom[key], str(found["cases"]), *(number(found[part]) for part in PARTS)])
    if len(table) > 1:
        print_rows(table)


def print_results(merged, ours_only):
    device = at(merged, "device", "name") or "no GPU"
    versions = ", ".join(f"{name} {v}" for name, v in merged["versions"].items() if v)
    print(f"{device}; {versions or 'no peers'}; {merged['rounds']} rounds; {len(merged['cases'])} cases")
    copy = merged["copy"]
    if copy["TBps"]:
        print(f"device copy, TB/s: tk {number(copy['tk_TBps'])}, torch {number(copy['torch_TBps'])}")
    print()
    if ours_only:
        speeds([(name, row) for name, row in merged["cases"].items() if row["tk"] is not None])
    print_distributions(merged)
    for family in () if ours_only else merged["families"]:
        own = [(name, row) for name, row in merged["cases"].items() if row["family"] == family and row["ratio"] is not None]
        if own:
            print(f"\n{family}: the worst of {len(own)}")
            speeds(sorted(own, key=lambda pair: pair[1]["ratio"])[:SHOWN])
    print()
    for name, row in merged["cases"].items():
        if row["error"]:
            print(row["error"])
        if row["torch_error"]:
            print(f"{name}: torch: {row['torch_error']}")


def save(path, words):
    try:
        path.write_text(words, encoding="utf-8")
    except OSError as error:
        turns.stop(1, f"cannot write {path}: {error.strerror}")


def run(args):
    cases = cases_of(args)
    folder = Path(tempfile.mkdtemp(prefix="tk-gpu-bench-"))
    try:
        rounds, failures = measure(args, cases, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    merged = merge(cases, rounds) | {"seed": None if args.cases else args.seed, "failures": failures}
    save(args.out, json.dumps(merged, indent=1) + "\n")
    if args.svg:
        points = [
            {"name": name, "family": row["family"], "size": size(row["case"]), "ratio": row["ratio"]}
            for name, row in merged["cases"].items()
            if row["ratio"] is not None
        ]
        save(args.svg, picture.svg(points, f"{at(merged, 'device', 'name') or 'no GPU'}, {len(points)} cases"))
    print_results(merged, args.ours_only)
    for failure in failures:
        print(f"failed: {failure}")
    return 1 if failures else 0
