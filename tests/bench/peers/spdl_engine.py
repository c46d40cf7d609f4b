"""What SPDL's engine costs an item: a pipeline of one stage that does nothing."""

import json
import time

import common

try:
    from spdl.pipeline import PipelineBuilder
except ImportError:
    common.not_installed("SPDL")

ITEMS = 20_000


def nothing(item):
    return item


def main():
    for concurrency in (1, 8):
        wall, cpu = time.perf_counter(), common.cpu_seconds()
        pipeline = (
            PipelineBuilder()
            .add_source(range(ITEMS))
            .pipe(nothing, concurrency=concurrency)
            .add_sink(64)
            .build(num_threads=concurrency)
        )
        with pipeline.auto_stop():
            assert sum(1 for _ in pipeline) == ITEMS
        wall, cpu = time.perf_counter() - wall, common.cpu_seconds() - cpu
        fields = {"items": ITEMS, "wall_ns": wall / ITEMS * 1e9, "cpu_ns": cpu / ITEMS * 1e9}
        print(json.dumps({"program": f"spdl_map_{concurrency}", **fields}))


if __name__ == "__main__":
    main()
