#!/usr/bin/env python3
"""A folder of images to batches, read from a server with 20 ms to the first byte and from the
disk. CPU time is compared without what the transfer alone takes, which is measured too; so are
images a second, with those that the CPUs could do which the transfer and the server also use. And
through a disk cache that has all of them.

Usage: remote_cost.py BIN CORPUS"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent


def line_of(*command):
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads([line for line in done.stdout.splitlines() if line.startswith("{")][0])


def main():
    binaries, corpus = sys.argv[1:]
    slow = f"{binaries}/slow_server --delay-ms 20 --dir {corpus}"
    server = [sys.executable, HERE / "with_server.py", "--slow", slow, "--"]
    read = [f"{binaries}/remote_bench", "--dir", corpus]
    remote = [*server, *read, "--url", "@URL@", "--depth", "128"]
    local, images = line_of(*read), line_of(*remote)
    transfer = line_of(*remote, "--transfer")
    files = line_of(*read, "--transfer")
    with tempfile.TemporaryDirectory(dir=Path(corpus).parent) as cache:
        kept = [*remote, "--cache", cache]
        cached = line_of(*kept)
        cached_files = line_of(*kept, "--transfer")
    deducted = transfer["cpu_us_per_image"] - files["cpu_us_per_image"]
    beside = (deducted + images["server_cpu_us"]) / len(os.sched_getaffinity(0))
    possible = 1 / (1 / local["images_per_s"] + beside / 1e6)
    fields = {
        "program": "remote_cost",
        "local_cpu_us": local["cpu_us_per_image"],
        "remote_cpu_us": images["cpu_us_per_image"],
        "transfer_cpu_us": transfer["cpu_us_per_image"],
        "local_images_per_s": local["images_per_s"],
        "remote_images_per_s": images["images_per_s"],
        "server_cpu_us": images["server_cpu_us"],
        "of_possible": images["images_per_s"] / possible,
        "of_local": local["cpu_us_per_image"] / (images["cpu_us_per_image"] - deducted),
        "cached_images_per_s": cached["images_per_s"],
        "cached_cpu_us": cached["cpu_us_per_image"],
        "cached_of_local": cached["images_per_s"] / local["images_per_s"],
        "cached_files_of_local": cached_files["images_per_s"] / files["images_per_s"],
    }
    print(json.dumps(fields))


if __name__ == "__main__":
    main()
