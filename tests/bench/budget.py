#!/usr/bin/env python3
"""Runs budget_bench with more and more items at a time and compares the peak of the process's memory
with what it may be: the budget, one item, and 64 MiB for all else. Fails where it is more.

With --figures it prints a line of JSON for each run instead, and does not fail. --only takes `files`,
and formats of images, which need Pillow, and AVIF avifenc."""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile

ELSE_MIB = 64
NOT_INSTALLED = 77

# Sizes of which one has more and one less than the 32 MiB from which glibc always maps memory.
SIZES = ((4000, 3000), (2400, 1800))

FORMATS = {
    "baseline.jpg": ("RGB", {}),
    "progressive.jpg": ("RGB", {"progressive": True}),
    "rgb.png": ("RGB", {}),
    "rgba.png": ("RGBA", {}),
    "grey.png": ("L", {}),
    "lossy.webp": ("RGB", {"method": 0}),
    "lossless.webp": ("RGB", {"lossless": True, "method": 0, "quality": 0}),
    "raw.tiff": ("RGB", {}),
    "lzw.tiff": ("RGB", {"compression": "tiff_lzw"}),
    "palette.gif": ("P", {}),
    "rgb.ppm": ("RGB", {}),
    "rgb.bmp": ("RGB", {}),
    "rgb.avif": ("RGB", {}),
}


def make_images(directory, formats, sizes):
    """A file of each format and size by its name, as far as what writes it is installed."""
    try:
        from PIL import Image
    except ImportError:
        return {}
    paths = {}
    for width, height in sizes:
        image = Image.linear_gradient("L").resize((width, height)).convert("RGB")
        for name in formats:
            mode, options = FORMATS[name]
            if name.endswith(".avif") and not shutil.which("avifenc"):
                continue
            path = paths[f"{width} {name}"] = os.path.join(directory, f"{width}-{name}")
            if name.endswith(".avif"):
                write_avif(image.convert(mode), path)
            else:
                image.convert(mode).save(path, **options)
    return paths


def write_avif(image, path):
    """By avifenc: Debian's Pillow has no AVIF."""
    image.save(path + ".png", compress_level=1)
    subprocess.run(["avifenc", "--speed", "10", path + ".png", path], check=True, capture_output=True)
    os.remove(path + ".png")


def measure(program, kind, budget, parallel, image=None):
    count = 40 if kind == "files" else 2 * parallel
    options = {"kind": kind, "budget-mib": budget, "parallel": parallel, "count": count}
    if image:
        options["image"] = image
    words = [word for name, value in options.items() for word in (f"--{name}", str(value))]
    ended = subprocess.run([program, *words], stdout=subprocess.PIPE, text=True, check=True)
    found = json.loads(ended.stdout)
    found["allowed_mib"] = budget + found["item_mib"] + ELSE_MIB
    found["mib_over_allowed"] = found["peak_rss_mib"] - found["allowed_mib"]
    return found


def show(name, parallel, found):
    held = "yes" if found["mib_over_allowed"] <= 0 else "NO"
    print(f"{name:22} {parallel:3} at a time: {found['peak_rss_mib']:7.1f} MiB, at most "
          f"{found['allowed_mib']:7.1f}: {held}", flush=True)


def kinds_to_run(only, directory, sizes):
    """Name, kind and file of what is loaded."""
    files = [("files", "files", None)]
    if only:
        runs = files if "files" in only else []
    else:
        runs = [*files, ("images", "images", None), ("progressive", "progressive", None)]
    formats = [name for name in only or FORMATS if name in FORMATS]
    images = make_images(directory, formats, sizes) if formats else {}
    if formats and not images:
        if only:
            sys.exit(NOT_INSTALLED)
        print("no Pillow: only files and JPEGs of one colour")
    return runs + [(name, "images", path) for name, path in images.items()]


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program", help="budget_bench")
    parser.add_argument("--budget-mib", type=int, default=64)
    parser.add_argument("--parallel", type=int, nargs="+", default=[1, 2, 4, 16, 64])
    parser.add_argument("--only", nargs="+", choices=["files", *FORMATS])
    parser.add_argument("--figures", action="store_true", help="JSON; images of one size")
    return parser.parse_args()


def main():
    parsed = parse_arguments()
    missed = 0
    with tempfile.TemporaryDirectory() as directory:
        sizes = SIZES[:1] if parsed.figures else SIZES
        for name, kind, image in kinds_to_run(parsed.only, directory, sizes):
            for parallel in parsed.parallel:
                found = measure(parsed.program, kind, parsed.budget_mib, parallel, image)
                if parsed.figures:
                    print(json.dumps({**found, "figure": f"{parallel} at a time"}), flush=True)
                else:
                    missed += found["mib_over_allowed"] > 0
                    show(name, parallel, found)
    sys.exit(missed > 0)


if __name__ == "__main__":
    main()
