#!/usr/bin/env python3
"""Runs a program that trains, and prints what it says of its last epoch as a line of JSON: how long
the epoch took, and which share of that the trainer waited for data. The word RUN among the
arguments becomes a directory that is not kept.

Usage: trainer.py PROGRAM [ARGUMENT...]"""

import json
import re
import resource
import subprocess
import sys
import tempfile
import time

EPOCH = re.compile(r"^epoch +\d+ .* ([\d.]+) s +([\d.]+) images/s .*waited +([\d.]+) %$", re.MULTILINE)


def line_of(output):
    seconds, per_second, waited = EPOCH.findall(output)[-1]
    return {
        "program": "trainer",
        "epoch_s": float(seconds),
        "images_per_s": float(per_second),
        "waited_percent": float(waited),
    }


def main():
    begin = time.perf_counter()
    with tempfile.TemporaryDirectory() as directory:
        command = [directory if word == "RUN" else word for word in sys.argv[1:]]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(f"{command[0]}: status {done.returncode}")
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    times = {"wall_s": time.perf_counter() - begin, "cpu_s": used.ru_utime + used.ru_stime}
    print(json.dumps({**line_of(done.stdout), **times}))


if __name__ == "__main__":
    main()
