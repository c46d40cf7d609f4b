"""What the peers' programs share: options, clocks and the line of JSON they end with."""

import argparse
import json
import os
import resource
import sys
import time
from pathlib import Path

NOT_INSTALLED = 77
SIZE = 224
MEAN = (0.485, 0.456, 0.406)
DEVIATION = (0.229, 0.224, 0.225)


def not_installed(what):
    print(f"{what}: not installed", file=sys.stderr)
    sys.exit(NOT_INSTALLED)


def options(about, **standards):
    """The options every loader has; `standards` replaces what is standard for all."""
    parser = argparse.ArgumentParser(
        description=about, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--dir", default="build/corpus", help="the images, in a directory per class")
    parser.add_argument("--transform", default="resize", choices=["val", "train", "resize"])
    parser.add_argument("--images", type=int, default=0, help="how many; 0: each file once")
    parser.add_argument("--batch", type=int, default=256, help="images to a batch")
    parser.add_argument(
        "--threads", type=int, default=len(os.sched_getaffinity(0)), help="threads or processes"
    )
    parser.set_defaults(**standards)
    return parser


def paths(arguments):
    """The files, repeated or cut to as many as are wanted."""
    files = sorted(str(path) for path in Path(arguments.dir).rglob("*.jpg"))
    wanted = arguments.images or len(files)
    return (files * (wanted // len(files) + 1))[:wanted]


def seconds_since_start():
    """Since this process was started, to 10 ms: imports count."""
    ticks = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
    return time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")


def cpu_seconds():
    """Of this process and of all its children that have ended."""
    both = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in both)


ELEMENTS = {"uint8": "u8", "float32": "f32"}


class Meter:
    """Measures a loader from its construction, after the imports, to `report`."""

    def __init__(self, program, arguments, **more):
        self.fields = {"program": program, "transform": arguments.transform, **more}
        self.fields["threads"] = arguments.threads
        self.images = 0
        self.first_batch = None
        self.wall = time.perf_counter()
        self.cpu = cpu_seconds()

    def batch(self, array):
        """A batch of images, an array or a tensor, has come."""
        if self.first_batch is None:
            self.first_batch = seconds_since_start()
            self.fields["shape"] = list(array.shape[1:])
            self.fields["elements"] = ELEMENTS[str(array.dtype).rpartition(".")[2]]
        self.images += len(array)

    def report(self):
        """To be called when all threads and processes have ended."""
        wall = time.perf_counter() - self.wall
        cpu = cpu_seconds() - self.cpu
        self.fields |= {
            "images": self.images,
            "wall_s": wall,
            "cpu_s": cpu,
            "images_per_s": self.images / wall,
            "images_per_cpu_s": self.images / cpu,
            "first_batch_ms": self.first_batch * 1e3,
        }
        print(json.dumps(self.fields))
