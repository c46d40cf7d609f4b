#!/usr/bin/env python3
"""Whether lade and the bare loop make the same pixels: a comparison of their speed says nothing
otherwise. Prints the largest and the mean difference over a batch, in levels of 8 bits.

Usage: agree.py PROGRAMS CORPUS, the directories of the programs and of the images."""

import array
import json
import subprocess
import sys
import tempfile
from pathlib import Path

IMAGES = 32
PLANE = 224 * 224
DEVIATION = (0.229, 0.224, 0.225)  # of a normalised channel, in units of 255 levels

COMPARED = {
    "val_exact": "--transform val",
    "val_fast": "--transform val --quality fast",
    "val_f32": "--transform val --layout chw_f32",
    "resize_exact": "--transform resize",
    "resize_fast": "--transform resize --quality fast",
    "train_u8": "--transform train",
    "train_f32": "--transform train --layout chw_f32",
}


def first_batch(program, corpus, options, directory):
    out = Path(directory) / program.name
    subprocess.run(
        [program, "--dir", corpus, *options.split()]
        + ["--images", str(IMAGES), "--batch", str(IMAGES), "--dump", out],
        stdout=subprocess.DEVNULL,
        check=True,
    )
    return out.read_bytes()


def levels_apart(ours, theirs, floats):
    if not floats:
        return [abs(a - b) for a, b in zip(ours, theirs)]
    ours, theirs = array.array("f", ours), array.array("f", theirs)
    by_channel = [255 * deviation for deviation in DEVIATION]
    return [
        abs(a - b) * by_channel[i // PLANE % 3] for i, (a, b) in enumerate(zip(ours, theirs))
    ]


def main():
    programs, corpus = map(Path, sys.argv[1:])
    for name, options in COMPARED.items():
        with tempfile.TemporaryDirectory() as directory:
            ours, theirs = (
                first_batch(programs / program, corpus, options, directory)
                for program in ("loader_bench", "bare_loop")
            )
        floats = "f32" in options
        if not len(ours) == len(theirs) == IMAGES * PLANE * 3 * (4 if floats else 1):
            sys.exit(f"{name}: {len(ours)} and {len(theirs)} bytes")
        apart = levels_apart(ours, theirs, floats)
        fields = {"largest": max(apart), "mean": sum(apart) / len(apart)}
        print(json.dumps({"program": name, **fields}))


if __name__ == "__main__":
    main()
