#!/usr/bin/env python3
"""Writes rows of scripts/bench (tensor, network) into the tables of docs/reference/benchmarks.md.

    benchmarks/figures.py ROWS MACHINE [PAGE]

A table stands in the page between "<!-- table: MACHINE, SUITE, N threads -->" and "<!-- end -->":
for each case ours divided by libtorch's with the tuned malloc. Of two rows for the same cell the last
one counts. Exit status 1, and the page as it was: a line that is no row, a table that the page lacks,
or nothing to write.
"""
import json
import os
import re
import sys

PARTS = [f"{dtype}_{part}" for dtype in ("f64", "f32") for part in ("forward", "backward", "total")]
HEAD = "| case | f64 forward | backward | total | f32 forward | backward | total |\n"
HEAD += "|---" * 7 + "|\n"


def read(path):
    """{(suite, threads): {case: {part: ratio}}}, in the order of the rows."""
    tables = {}
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            try:
                row = json.loads(line)
                suite, case, peer = row["suite"], row["case"], row["peer_name"]
                metric, ratio = row["metric"], float(row["ratio"])
            except (ValueError, KeyError, TypeError):
                sys.exit(f"{path}:{number}: not a row")
            name = re.fullmatch(r"(f32|f64)_(\d+)t_(forward|backward|total)", metric)
            if name and suite in ("tensor", "network") and peer == "libtorch_tuned_malloc":
                cases = tables.setdefault((suite, int(name[2])), {})
                cases.setdefault(case, {})[f"{name[1]}_{name[3]}"] = ratio
    return tables


def written(cases):
    text = HEAD
    for case, cells in cases.items():
        shown = [f"{cells[part]:.2f}" if part in cells else "" for part in PARTS]
        text += f"| `{case}` | " + " | ".join(shown) + " |\n"
    return text


def main(rows, machine, page):
    with open(page, encoding="utf-8") as file:
        text = file.read()
    tables = read(rows)
    if not tables:
        sys.exit(f"{rows}: there is nothing to write")
    for (suite, threads), cases in tables.items():
        name = f"{machine}, {suite}, {threads} thread{'s' if threads > 1 else ''}"
        begin = f"<!-- table: {name} -->\n"
        at = text.find(begin)
        if at < 0:
            sys.exit(f"{page}: there is no table {name}")
        at += len(begin)
        text = text[:at] + written(cases) + text[text.index("<!-- end -->", at):]
    with open(page, "w", encoding="utf-8") as file:
        file.write(text)


if not 3 <= len(sys.argv) <= 4:
    sys.exit("usage: figures.py ROWS MACHINE [PAGE]")
main(*sys.argv[1:3], (sys.argv[3:] or [os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                                    "../docs/reference/benchmarks.md")])[0])
