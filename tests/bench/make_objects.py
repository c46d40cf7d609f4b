#!/usr/bin/env python3
"""Makes the objects that a web server serves: a bucket with a directory for each size."""

import argparse
import random
from pathlib import Path

# The number and the size of the objects of each directory.
OBJECTS = {
    "4k": (1000, 4096),
    "110k": (1000, 110_000),
    "100m": (4, 100_000_000),
    "1g": (1, 1 << 30),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="directory to write to")
    bucket = parser.parse_args().out / "bucket"
    piece = random.Random(1).randbytes(1 << 20)
    for name, (count, size) in OBJECTS.items():
        directory = bucket / name
        directory.mkdir(parents=True)
        for number in range(count):
            with open(directory / str(number), "wb") as out:
                for offset in range(0, size, len(piece)):
                    out.write(piece[: size - offset])


if __name__ == "__main__":
    main()
