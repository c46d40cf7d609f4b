#!/usr/bin/env python3
"""What a trace costs: two loaders at the same time, each on a CPU of its own, one of them traced,
and then once more with the CPUs exchanged. What disturbs the machine disturbs both, and that one
CPU is slower than the other does not count. Prints the geometric mean of the traced loader's
figures beside the other's.

Usage: trace_cost.py TRACE LOADER [ARGUMENT...]"""

import functools
import json
import math
import os
import subprocess
import sys

FIGURES = ("images_per_s", "images_per_cpu_s")


def start(command, cpu):
    pin = functools.partial(os.sched_setaffinity, 0, {cpu})
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, preexec_fn=pin)


def finish(program):
    """The line that it prints."""
    text = program.communicate()[0]
    if program.returncode != 0:
        sys.exit(f"{program.args[0]}: status {program.returncode}")
    return json.loads(text)


def beside_each_other(loader, trace, cpus):
    plain, traced = start(loader, cpus[0]), start([*loader, "--trace", trace], cpus[1])
    said = [finish(each) for each in (plain, traced)]
    return {figure: said[1][figure] / said[0][figure] for figure in FIGURES}


def main():
    trace, loader = sys.argv[1], sys.argv[2:]
    cpus = sorted(os.sched_getaffinity(0))[:2]
    there, back = (beside_each_other(loader, trace, order) for order in (cpus, cpus[::-1]))
    size = os.stat(trace).st_size / 2**20
    os.unlink(trace)
    ratios = {figure: math.sqrt(there[figure] * back[figure]) for figure in FIGURES}
    print(json.dumps({"program": "trace", "mib": size, **ratios}))


if __name__ == "__main__":
    main()
