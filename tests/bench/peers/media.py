"""What the peers' programs of video and audio share: the places of clips, and the figures of items,
as media.hpp has them."""

import json
import time
from concurrent.futures import ThreadPoolExecutor

import common

FRAMES = 16
SIDE = 224


def picked(pick, frames, clip):
    """The indices of the frames of a clip."""
    if pick == "even":
        return [(2 * i + 1) * frames // (2 * FRAMES) for i in range(FRAMES)]
    places = frames - FRAMES + 1
    first = (clip + 1) * (places * 618 // 1000) % places
    return list(range(first, first + FRAMES))


def by_pool(load, items, threads):
    """A pool of threads: all of these libraries release Python's lock while they decode."""
    with ThreadPoolExecutor(threads) as pool:
        yield from pool.map(load, range(items))


def by_spdl(load, items, threads):
    from spdl.pipeline import PipelineBuilder

    builder = PipelineBuilder().add_source(range(items)).pipe(load, concurrency=threads)
    pipeline = builder.add_sink(16).build(num_threads=threads)
    with pipeline.auto_stop():
        yield from pipeline


def by_threads(reader, load, items, threads):
    """What `load` returns of each item, from so many threads beside the caller's."""
    return (by_spdl if reader == "SPDL" else by_pool)(load, items, threads)


def each(reader, load, items, threads):
    """The same; the caller's thread is the only one if there is to be one."""
    return map(load, range(items)) if threads == 1 else by_threads(reader, load, items, threads)


class Meter:
    """Measures from its construction to `report`."""

    def __init__(self, program):
        self.program = program
        self.wall, self.cpu = time.perf_counter(), common.cpu_seconds()

    def report(self, items, item_frames, **more):
        wall, cpu = time.perf_counter() - self.wall, common.cpu_seconds() - self.cpu
        fields = {
            "program": self.program,
            "items": items,
            "item_frames": item_frames,
            "wall_s": wall,
            "cpu_s": cpu,
            "items_per_s": items / wall,
            "items_per_cpu_s": items / cpu,
            "cpu_ms_per_item": cpu / items * 1e3,
        }
        if "seconds" in more:
            more["audio_s_per_cpu_s"] = more.pop("seconds") / cpu
        print(json.dumps({**fields, **more}))


def dump(path, array):
    if path:
        with open(path, "wb") as file:
            file.write(array.tobytes())
