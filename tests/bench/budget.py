#!/usr/bin/env python3
"""Runs budget_bench with more and more items at a time and compares the peak of the process's memory
with what it may be: the budget, one item, and 64 MiB for all else. Fails where it is more.

Usage: budget.py PROGRAM [BUDGET_MIB]"""

import json
import subprocess
import sys

ELSE_MIB = 64


def measure(program, kind, budget, parallel):
    count = 40 if kind == "files" else 2 * parallel
    options = {"kind": kind, "budget-mib": budget, "parallel": parallel, "count": count}
    words = [word for name, value in options.items() for word in (f"--{name}", str(value))]
    ended = subprocess.run([program, *words], stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(ended.stdout)


def main():
    program = sys.argv[1]
    budget = int(sys.argv[2]) if len(sys.argv) > 2 else 64
    missed = False
    for kind in ("files", "images", "progressive"):
        for parallel in (1, 2, 4, 16, 64):
            found = measure(program, kind, budget, parallel)
            allowed = budget + found["item_mib"] + ELSE_MIB
            held = found["peak_rss_mib"] <= allowed
            missed = missed or not held
            print(f"{kind:12} {parallel:3} at a time: {found['peak_rss_mib']:7.1f} MiB, at most "
                  f"{allowed:7.1f}: {'yes' if held else 'NO'}")
    sys.exit(missed)


if __name__ == "__main__":
    main()
