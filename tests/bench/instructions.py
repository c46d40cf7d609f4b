#!/usr/bin/env python3
"""Counts the instructions that a program needs for an item, with callgrind: the same on every
machine and with anything beside it. Two runs, of few items and of more: the difference is what
the items took, without the program's start. Under valgrind there is neither AVX-512 nor, in this
measurement, io_uring: all programs take their AVX2 path.

Usage: instructions.py OPTION FEW MORE PROGRAM [ARGUMENT...]. OPTION tells the program how many
items: --images or --items. Prints a line of JSON. Ends with status 77 if valgrind is not
installed."""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path


def count(command):
    """All instructions of a run."""
    with tempfile.TemporaryDirectory() as directory:
        log = Path(directory) / "log"
        subprocess.run(
            ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"]
            + [f"--log-file={log}", *command],
            env={**os.environ, "LADE_REACTOR": "fallback"},
            stdout=subprocess.DEVNULL,
            check=True,
        )
        return int(re.search(r"Collected : (\d+)", log.read_text())[1])


def main():
    if shutil.which("valgrind") is None:
        sys.exit(77)
    option, few, more, *command = sys.argv[1:]
    fewest, most = (count([*command, option, items]) for items in (few, more))
    items = int(more) - int(few)
    counted = {"instructions_per_item": (most - fewest) / items, "items": items}
    print(json.dumps({"program": Path(command[0]).name, **counted}))


if __name__ == "__main__":
    main()
