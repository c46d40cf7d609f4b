#!/usr/bin/env python3
"""So many processes of a program at the same time: prints what they do together as one line of
theirs. The slowest of them counts.

Usage: side_by_side.py COUNT PROGRAM [ARGUMENT...]"""

import json
import subprocess
import sys


def finish(program):
    """The line that it prints."""
    text = program.communicate()[0]
    if program.returncode != 0:
        sys.exit(f"{program.args[0]}: status {program.returncode}")
    return json.loads(text)


def together(lines):
    images = sum(line["images"] for line in lines)
    wall_s = max(line["wall_s"] for line in lines)
    cpu_s = sum(line["cpu_s"] for line in lines)
    rates = {"images_per_s": images / wall_s, "images_per_cpu_s": images / cpu_s}
    return {**lines[0], "images": images, "wall_s": wall_s, "cpu_s": cpu_s, **rates}


def main():
    count, command = int(sys.argv[1]), sys.argv[2:]
    programs = [
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(count)
    ]
    print(json.dumps(together([finish(program) for program in programs])))


if __name__ == "__main__":
    main()
