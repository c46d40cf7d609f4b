"""Reads archives, arrays and records with a peer, as archives_bench does with lade: one thread of
one process, or several processes."""

import argparse
import io
import json
import os
import time
from pathlib import Path

import common


def spdl_reader(format, in_memory):
    import numpy
    import spdl.io

    def read(path):
        with open(path, "rb") as file:
            return file.read()

    def tar(item):
        if in_memory:
            yield from (len(content) for _, content in spdl.io.iter_tarfile(item))
            return
        with open(item, "rb") as file:
            yield from (len(content) for _, content in spdl.io.iter_tarfile(file))

    def npz(item):
        arrays = spdl.io.load_npz(item if in_memory else read(item))
        yield sum(arrays[name].nbytes for name in arrays.files)

    one = {"npy": spdl.io.load_npy, "wav": lambda data: numpy.asarray(spdl.io.load_wav(data))}

    def array(item):
        yield one[format](item if in_memory else read(item)).nbytes

    return {"tar": tar, "npz": npz, "npz-deflated": npz}.get(format, array)


def numpy_reader(format, in_memory):
    import numpy

    def npy(item):
        yield numpy.load(io.BytesIO(item) if in_memory else item).nbytes

    def npz(item):
        with numpy.load(io.BytesIO(item) if in_memory else item) as arrays:
            yield sum(arrays[name].nbytes for name in arrays.files)

    return npy if format == "npy" else npz


def webdataset_reader(format, in_memory):
    from webdataset.gopen import gopen
    from webdataset.tariterators import tar_file_iterator

    def opened(item):
        if in_memory:
            return io.BytesIO(item)
        return gopen(item) if "://" in str(item) else open(item, "rb")

    def tar(item):
        with opened(item) as file:
            yield from (len(member["data"]) for member in tar_file_iterator(file))

    return tar


def soundfile_reader(format, in_memory):
    import soundfile

    def wav(item):
        yield soundfile.read(io.BytesIO(item) if in_memory else item, dtype="int16")[0].nbytes

    return wav


def tfrecord_reader(format, in_memory):
    from tfrecord.reader import tfrecord_iterator

    def records(item):  # verifies no checksum
        yield from (len(record) for record in tfrecord_iterator(str(item)))

    return records


READERS = {
    "spdl": spdl_reader,
    "numpy": numpy_reader,
    "webdataset": webdataset_reader,
    "soundfile": soundfile_reader,
    "tfrecord": tfrecord_reader,
}


def options():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reader", choices=READERS, required=True)
    parser.add_argument("--dir", default="build/archives", help="what make_archives.py has made")
    parser.add_argument("--format", required=True)
    parser.add_argument("--size", default="4k")
    parser.add_argument("--source", default="memory", help="memory, disk, or a URL of the directory")
    parser.add_argument("--passes", type=int, default=1, help="how often all is read")
    return parser.parse_args()


def main():
    wanted = options()
    in_memory = wanted.source == "memory"
    try:
        read = READERS[wanted.reader](wanted.format, in_memory)
    except ImportError:
        common.not_installed(wanted.reader)
    paths = sorted(Path(wanted.dir, f"{wanted.format}-{wanted.size}").iterdir())
    contents = [path.read_bytes() for path in paths]
    inputs = contents if in_memory else paths
    if "://" in wanted.source:
        inputs = [f"{wanted.source}/{path.parent.name}/{path.name}" for path in paths]
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    for item in inputs:  # memory that is used for the first time costs more
        for _ in read(item):
            pass
    items, size = 0, 0
    wall, cpu = time.perf_counter(), common.cpu_seconds()
    for _ in range(wanted.passes):
        for item in inputs:
            for count in read(item):
                items += 1
                size += count
    wall, cpu = time.perf_counter() - wall, common.cpu_seconds() - cpu
    fields = {
        "program": wanted.reader,
        "format": wanted.format,
        "size": wanted.size,
        "source": wanted.source,
        "items": items,
        "item_bytes": size // items,
        "wall_s": wall,
        "cpu_s": cpu,
        "items_per_s": items / wall,
        "cpu_us_per_item": cpu / items * 1e6,
    }
    print(json.dumps(fields))


if __name__ == "__main__":
    main()
