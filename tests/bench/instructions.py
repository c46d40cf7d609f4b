#!/usr/bin/env python3
"""Counts the instructions that a loader needs for an image, with callgrind: the same on every
machine and with anything beside it. Two runs, of few images and of more: the difference is what
the images took, without the program's start. Under valgrind there is neither AVX-512 nor, in this
measurement, io_uring: all programs take their AVX2 path.

Usage: instructions.py PROGRAM [ARGUMENT...], the arguments without --images. Prints a line of JSON.
Ends with status 77 if valgrind is not installed."""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

FEW, MORE = 32, 160


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
    few, more = (count([*sys.argv[1:], "--images", str(images)]) for images in (FEW, MORE))
    counted = {"instructions_per_image": (more - few) / (MORE - FEW), "images": MORE - FEW}
    print(json.dumps({"program": Path(sys.argv[1]).name, **counted}))


if __name__ == "__main__":
    main()
