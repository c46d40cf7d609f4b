"""Items a second through SPDL's engine: stages that do nothing, as in ../pipeline_bench.cpp."""

import argparse
import json
import time

import common

try:
    from spdl.pipeline import PipelineBuilder
except ImportError:
    common.not_installed("SPDL")


def nothing(item):
    return item


def options():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=int, default=10_000)
    parser.add_argument("--stages", type=int, default=1)
    parser.add_argument("--concurrency", type=int, default=1, help="of each stage, and threads")
    return parser.parse_args()


def main():
    wanted = options()
    wall, cpu = time.perf_counter(), common.cpu_seconds()
    builder = PipelineBuilder().add_source(range(wanted.items))
    for _ in range(wanted.stages):
        builder.pipe(nothing, concurrency=wanted.concurrency)
    pipeline = builder.add_sink(64).build(num_threads=wanted.concurrency)
    with pipeline.auto_stop():
        assert sum(1 for _ in pipeline) == wanted.items
    wall, cpu = time.perf_counter() - wall, common.cpu_seconds() - cpu
    fields = {
        "program": "SPDL",
        **vars(wanted),
        "wall_s": wall,
        "cpu_s": cpu,
        "cpu_ns": cpu / wanted.items * 1e9,
        "items_per_s": wanted.items / wall,
        "items_per_cpu_s": wanted.items / cpu,
    }
    print(json.dumps(fields))


if __name__ == "__main__":
    main()
