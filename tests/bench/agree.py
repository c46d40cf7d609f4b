#!/usr/bin/env python3
"""Whether lade and the bare loop make the same pixels: a comparison of their speed says nothing
otherwise. Prints the largest difference of a byte and the mean one over a batch.

Usage: agree.py PROGRAMS CORPUS, the directories of the programs and of the images."""

import itertools
import json
import subprocess
import sys
import tempfile
from pathlib import Path

IMAGES = 32


def first_batch(program, corpus, transform, quality, directory):
    out = Path(directory) / program.name
    subprocess.run(
        [program, "--dir", corpus, "--transform", transform, "--quality", quality]
        + ["--images", str(IMAGES), "--batch", str(IMAGES), "--dump", out],
        stdout=subprocess.DEVNULL,
        check=True,
    )
    return out.read_bytes()


def main():
    programs, corpus = map(Path, sys.argv[1:])
    pair = programs / "loader_bench", programs / "bare_loop"
    if not all(program.exists() for program in pair):
        sys.exit(77)
    for transform, quality in itertools.product(("val", "resize"), ("exact", "fast")):
        with tempfile.TemporaryDirectory() as directory:
            ours, theirs = (first_batch(p, corpus, transform, quality, directory) for p in pair)
        assert len(ours) == len(theirs) > 0
        apart = [abs(a - b) for a, b in zip(ours, theirs)]
        fields = {"largest": max(apart), "mean": sum(apart) / len(apart)}
        print(json.dumps({"program": f"{transform}_{quality}", **fields}))


if __name__ == "__main__":
    main()
