#!/usr/bin/env python3
"""Runs a command that prints a line of JSON and adds to it the peak of the memory that the command
and all its children hold: the sum of their proportional set sizes, which counts shared pages once.
Looking costs CPU time, so the command's other figures are not to be used.

Usage: memory.py COMMAND [ARGUMENT...]"""

import json
import subprocess
import sys
import time
from pathlib import Path


def tree(pid):
    """The process and its descendants."""
    found = [pid]
    for process in found:
        for children in Path(f"/proc/{process}/task").glob("*/children"):
            try:
                found += map(int, children.read_text().split())
            except OSError:
                pass  # ended meanwhile
    return found


def pss_mib(pid):
    total = 0
    for process in tree(pid):
        try:
            for line in Path(f"/proc/{process}/smaps_rollup").read_text().splitlines():
                if line.startswith("Pss:"):
                    total += int(line.split()[1])
        except OSError:
            pass
    return total / 1024


def main():
    command = subprocess.Popen(sys.argv[1:], stdout=subprocess.PIPE, text=True)
    peak = 0
    while command.poll() is None:
        peak = max(peak, pss_mib(command.pid))
        time.sleep(0.02)
    for line in command.stdout.read().splitlines():
        print(json.dumps({**json.loads(line), "peak_pss_mib": round(peak, 1)}))
    sys.exit(command.returncode)


if __name__ == "__main__":
    main()
