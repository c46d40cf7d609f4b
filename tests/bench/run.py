#!/usr/bin/env python3
"""Runs lade and what it is measured by, in turns, and compares them.

All commands of a group run once a round, one after the other, so that what disturbs the machine
disturbs all of them. A ratio is taken within a round; the median over the rounds is printed, with
the smallest and the largest. Writes BUILD/bench.json with every figure of every run, and
BUILD/bench.md, the tables of docs/benchmarks.md. Ends with status 1 when a gate is not passed."""

import argparse
import datetime
import json
import os
import platform
import shlex
import statistics
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
NOT_INSTALLED = 77

IMAGES = 4096  # of each run of a loader
LOADERS = {
    "val": "--transform val",
    "val fast": "--transform val --quality fast",
    "train": "--transform train --layout chw_f32",
    "resize": "--transform resize",
    "resize fast": "--transform resize --quality fast",
}


@dataclass
class Row:
    """A comparison. `ours` and `theirs` name commands, or a line of one as `command:line`; of
    several of theirs the best counts. Without theirs, the figure itself is held to the gate."""

    name: str
    ours: str
    theirs: list
    figure: str
    gate: float | None = None
    higher_is_better: bool = True

    def passes(self, value):
        if self.gate is None:
            return None
        return value >= self.gate if self.higher_is_better else value <= self.gate

    def gate_text(self):
        return "" if self.gate is None else f"{'≥' if self.higher_is_better else '≤'} {self.gate:g}"


def lower(name, ours, theirs, figure, gate=None):
    return Row(name, ours, theirs, figure, gate, higher_is_better=False)


@dataclass
class Group:
    name: str
    about: str
    commands: dict = field(default_factory=dict)
    rows: list = field(default_factory=list)
    rounds: int | None = None
    memory: bool = False
    once: set = field(default_factory=set)  # commands that take too long for every round


def loader(program, options, threads, images=IMAGES, batch=256):
    return (
        f"{{bin}}/{program} --dir {{corpus}} {options} --threads {threads}"
        f" --images {images} --batch {batch}"
    )


def limit_group():
    group = Group("limit", "lade against a bare loop that does the same without a library")
    for threads in (1, 2):
        for name in ("val", "val fast", "train"):
            ours, theirs = f"lade {name} {threads}", f"bare {name} {threads}"
            group.commands[ours] = loader("loader_bench", LOADERS[name], threads)
            group.commands[theirs] = loader("bare_loop", LOADERS[name], threads)
            for figure in ("images_per_cpu_s", "images_per_s"):
                what = f"{name}, {threads} thread{'s' * (threads > 1)}"
                group.rows.append(Row(what, ours, [theirs], figure, 0.95))
    return group


def decode_group():
    group = Group("decode", "CPU time of an image, against libjpeg-turbo's own full decode to RGB")
    group.commands["libjpeg-turbo"] = loader("bare_loop", "--transform decode", 1)
    for name, gate in {"train": 1.05, "val": 1.35, "val fast": 1.15}.items():
        group.commands[f"lade {name}"] = loader("loader_bench", LOADERS[name], 1)
        group.commands[f"bare {name}"] = loader("bare_loop", LOADERS[name], 1)
        group.rows.append(
            lower(f"{name}, lade", f"lade {name}", ["libjpeg-turbo"], "cpu_ms_per_image", gate)
        )
        group.rows.append(
            lower(f"{name}, bare loop", f"bare {name}", ["libjpeg-turbo"], "cpu_ms_per_image")
        )
    group.commands["decode_bench"] = "{bin}/decode_bench"
    for name, gate in {"train": 1.05, "val": 1.35, "val_fast": 1.15}.items():
        group.rows.append(
            lower(f"{name}, decoder alone", f"decode_bench:{name}", [], "ratio", gate)
        )
    return group


def simd_group():
    group = Group("simd", "the bare loop's instruction sets against each other")
    for name in ("val", "val fast", "resize"):
        for build in ("bare_loop", "bare_loop_avx2", "bare_loop_plain"):
            group.commands[f"{build} {name}"] = loader(build, LOADERS[name], 1, images=1024)
        for build in ("bare_loop_avx2", "bare_loop_plain"):
            group.rows.append(
                lower(name, f"bare_loop {name}", [f"{build} {name}"], "cpu_ms_per_image")
            )
    return group


def peers_group():
    group = Group("peers", "lade against other loaders, each at its documented best", memory=True)
    for name in ("train", "val", "resize", "resize fast"):
        group.commands[f"lade {name}"] = loader("loader_bench", LOADERS[name], 2)
        group.commands[f"bare {name}"] = loader("bare_loop", LOADERS[name], 2)
    torch = "{system_python} {peers}/torch_loader.py --dir {corpus} --threads 2 --images 2048"
    group.commands["PyTorch train"] = f"{torch} --transform train"
    group.commands["PyTorch val"] = f"{torch} --transform val"
    spdl = "{peers_python} {peers}/spdl_loader.py --dir {corpus} --threads 2 --images 4096"
    group.commands["SPDL bilinear"] = f"{spdl} --scale bilinear"
    group.commands["SPDL own filter"] = f"{spdl} --scale own"
    opencv = "{peers_python} {peers}/opencv_loader.py --dir {corpus} --threads 2 --images 4096"
    group.commands["OpenCV resize"] = f"{opencv} --transform resize"
    group.commands["OpenCV val"] = f"{opencv} --transform val"
    comparisons = [
        ("train", "PyTorch train", 3),
        ("val", "PyTorch val", None),
        ("resize", "SPDL bilinear", 1.7),
        ("resize fast", "SPDL bilinear", 1.9),
        ("resize", "SPDL own filter", None),
        ("resize", "OpenCV resize", None),
        ("val", "OpenCV val", None),
    ]
    for ours, theirs, gate in comparisons:
        for who in ("lade", "bare"):
            group.rows.append(
                Row(
                    f"{who} {ours} / {theirs}",
                    f"{who} {ours}",
                    [theirs],
                    "images_per_cpu_s",
                    gate if who == "lade" else None,
                )
            )
    for name, theirs in (("train", "PyTorch train"), ("resize", "SPDL bilinear")):
        for figure in ("images_per_s", "first_batch_ms"):
            group.rows.append(
                Row(name, f"lade {name}", [theirs], figure, None, figure != "first_batch_ms")
            )
    return group


def bounds_group():
    group = Group("bounds", "the first batch of 32, the end in the middle, a consumer that stalls")
    for who, program in {"lade": "loader_bench", "bare": "bare_loop"}.items():
        group.commands[who] = loader(program, LOADERS["val"], 2, images=64, batch=32)
        group.rows.append(
            lower(f"{who}, first batch", who, [], "first_batch_ms", 50 if who == "lade" else None)
        )
    train = loader("loader_bench", LOADERS["train"], 2)
    group.commands["stop"] = f"{train} --stop"
    group.commands["stall"] = f"{train} --stall-ms 3000 --budget-mib 256"
    group.rows.append(lower("stop with all in flight", "stop", [], "stop_ms", 100))
    group.rows.append(lower("consumer stalls, budget 256 MiB", "stall", [], "mib_over_budget", 64))
    return group


def trace_group():
    about = "a minute of training images with a trace of all of it, beside the same without"
    group = Group("trace", about, rounds=2)
    load = loader("loader_bench", LOADERS["train"], 1, images=40_000)
    for where, path in {"memory": "/dev/shm/lade-trace.json", "disk": "{build}/trace.json"}.items():
        group.commands[where] = f"{{python}} {{here}}/trace_cost.py {path} {load}"
        for figure in ("images_per_s", "images_per_cpu_s"):
            group.rows.append(Row(f"traced, to {where}", where, [], figure, 0.98))
    return group


def agree_group():
    group = Group("agree", "whether lade and the bare loop make the same bytes", rounds=1)
    group.commands["pixels"] = "{python} {here}/agree.py {bin} {corpus}"
    for name, gate in {"val_exact": 1, "resize_exact": 1, "val_fast": None, "resize_fast": None}.items():
        group.rows.append(lower(name, f"pixels:{name}", [], "largest", gate))
        group.rows.append(lower(name, f"pixels:{name}", [], "mean"))
    return group


# Where they are, and how many lade has in flight: for copies out of the page cache, from the disk.
FILE_SIZES = {"110 KB": ("{files}", 16, 64), "4 KB": ("{files4k}", 64, 128)}


def readers_group(group, readers, loaders, tail):
    """The first of the loaders against all readers, the others beside it."""
    for size, (directory, cached, cold) in FILE_SIZES.items():
        theirs = []
        for name, options in readers.items():
            theirs.append(f"{name}, {size}")
            group.commands[theirs[-1]] = (
                f"{{bin}}/files_bare --dir {directory} --reader {options} {tail}"
            )
        gate = 0.95
        for name, options in loaders.items():
            ours = f"{name}, {size}"
            options = options.format(cached=cached, cold=cold)
            group.commands[ours] = f"{{bin}}/files_bench --dir {directory} {options} {tail}"
            group.rows.append(Row(ours, ours, theirs, "files_per_s", gate))
            group.rows.append(lower(ours, ours, theirs, "cpu_s_per_10k"))
            gate = None
    return group


def files_group():
    readers = {
        "1 thread": "threads --parallel 1",
        "2 threads": "threads --parallel 2",
        "2 threads, size known": "threads --parallel 2 --sized",
        "16 threads": "threads --parallel 16",
        "ring of 64, fstat": "ring --parallel 64",
        "ring of 64, size known": "ring --parallel 64 --sized",
        "chains of 64": "chain --parallel 64",
    }
    loaders = {
        "lade, 2 reactors": "--reactors 2 --parallel {cached}",
        "lade, 1 reactor": "--parallel {cached}",
    }
    group = Group("files", "20,000 files in the page cache, five times")
    return readers_group(group, readers, loaders, "--passes 5")


def cold_group():
    readers = {
        "16 threads": "threads --parallel 16",
        "32 threads, O_DIRECT": "threads --parallel 32 --direct",
        "ring of 64": "ring --parallel 64 --sized",
        "chains of 64, O_DIRECT": "chain --parallel 64 --direct",
        "chains of 256, O_DIRECT": "chain --parallel 256 --direct",
    }
    loaders = {
        "lade, past the page cache": "--direct --parallel {cold}",
        "lade, into the page cache": "--parallel {cold}",
    }
    group = Group("cold", "20,000 files whose contents are not in the page cache", rounds=3)
    return readers_group(group, readers, loaders, "--drop-caches")


def core_group():
    group = Group("core", "coroutines: times of one operation")
    group.commands["lade"] = "{bin}/core_bench"
    group.commands["floor"] = "{bin}/core_floor"
    group.commands["asio"] = "{bin}/asio_floor"
    group.commands["SPDL"] = "{peers_python} {peers}/spdl_engine.py --concurrency 8"
    for name, gate in {
        "await": 20,
        "generator": 8,
        "generator_chain": 30,
        "when_all": 30,
        "channel": 15,
        "map_64": 800,
        "map_8": 5000,
    }.items():
        group.rows.append(lower(name, f"lade:{name}", [], "cpu_ns", gate))
    queue, batches, asio = (
        ["floor:queue_of_64"],
        ["floor:queue_of_64_in_batches_of_32"],
        ["asio:asio_co_spawn"],
    )
    group.rows += [
        lower("channel of 64, two threads", "lade:channel_threads", queue, "wall_ns", 1.0),
        lower("the same, CPU", "lade:channel_threads", queue, "cpu_ns"),
        lower("channel in batches of 32", "lade:channel_batches", [], "wall_ns", 25),
        lower("channel in batches of 32", "lade:channel_batches", batches, "wall_ns"),
        lower("hand-off between threads", "lade:hand_off", ["floor:hand_off"], "wall_ns"),
        lower("spawn and join", "lade:spawn_join", asio, "cpu_ns", 0.5),
        lower("await", "lade:await", ["floor:allocation"], "cpu_ns"),
        lower("channel", "lade:channel", ["floor:mutex"], "cpu_ns"),
        lower("map delivered, 64 slots", "lade:map_64_delivered", ["floor:pool_of_two"], "cpu_ns"),
        lower("map delivered, 8 slots", "lade:map_8_delivered", ["SPDL"], "cpu_ns"),
    ]
    return group


def engine_group():
    group = Group("engine", "stages that do nothing: what the engine itself takes")
    group.commands["stages"] = "{bin}/stage_bench"
    group.commands["floor"] = "{bin}/core_floor"
    more = {"": "", "_reporting": ", reports", "_tracing": ", trace", "_hooked": ", hooks"}
    for name, gate in {"concurrent": 1000, "sequential": 25}.items():
        for suffix, text in more.items():
            gated = gate if suffix in ("", "_reporting") else None
            group.rows.append(
                lower(f"{name} stage{text}", f"stages:{name}{suffix}", [], "cpu_ns", gated)
            )
    for floor in ("mutex", "clock"):
        group.rows.append(
            lower("concurrent stage", "stages:concurrent", [f"floor:{floor}"], "cpu_ns")
        )
    group.commands["hand-off"] = "{bin}/hand_off_bench"
    ways = {"from a worker": 1.3, "in place": 1.3, "from a pool of its own": None, "task": None}
    for way, gate in ways.items():
        ours = "hand-off:" + way.replace(" ", "_")
        for figure in ("p50_us", "p99_us"):
            group.rows.append(lower(f"hand-off, {way}", ours, ["hand-off:bare"], figure, gate))
    group.commands["depth"] = "{bin}/depth_bench --what stages"
    group.commands["slots"] = "{bin}/depth_bench --what slots"
    group.commands["tasks"] = "{bin}/depth_bench --what tasks"
    group.once = {"depth", "slots", "tasks"}
    group.rows += [
        lower("1,000 stages, 1,000,000 items", "depth", [], "peak_rss_mib"),
        lower("1,000,000 finished items that wait", "slots:slots", [], "peak_rss_mib"),
        lower("each, beside the item", "slots:slots_memory", [], "bytes_each", 512),
        lower("each, beside the item", "slots:slots_memory", [], "rss_bytes_each"),
        lower("1,000,000 tasks that wait", "tasks:tasks", [], "peak_rss_mib"),
        lower("each, beside the item", "tasks:tasks_memory", [], "bytes_each"),
    ]
    group.commands["state"] = "{bin}/state_bench"
    for figure, gate in {"p50_us": 50, "p99_us": None, "json_bytes": 4096}.items():
        group.rows.append(lower("state, 100 million items", "state", [], figure, gate))
    for concurrency in (1, 2, 4, 8):
        options = f"--concurrency {concurrency}"
        ours, theirs = f"lade, concurrency {concurrency}", f"SPDL, concurrency {concurrency}"
        group.commands[ours] = f"{{bin}}/pipeline_bench {options}"
        group.commands[theirs] = f"{{peers_python}} {{peers}}/spdl_engine.py {options}"
        name = f"one stage, concurrency {concurrency}"
        group.rows.append(Row(name, ours, [theirs], "items_per_s", 150))
        group.rows.append(Row(name, ours, [theirs], "items_per_cpu_s"))
    return group


def autotune_group():
    about = "automatic concurrency, against the best of many fixed ones, on simulated servers"
    group = Group("autotune", about)
    group.commands["servers"] = "{bin}/autotune_bench"
    group.once = {"servers"}
    for server in ("wide", "narrow", "crowded", "uneven", "narrow, then wide"):
        figures = f"servers:{server}"
        group.rows += [
            Row(f"{server}, after ten seconds, of the best", figures, [], "of_best", 0.9),
            Row(f"{server}, until then, of the default", figures, [], "converging_of_default", 0.95),
        ]
    return group


GROUPS = [
    agree_group(),
    limit_group(),
    decode_group(),
    simd_group(),
    bounds_group(),
    peers_group(),
    core_group(),
    engine_group(),
    autotune_group(),
    trace_group(),
    files_group(),
    cold_group(),
]


class Bench:
    def __init__(self, build):
        self.build = build
        self.absent = {}  # why a command has no figures
        self.names = {
            "bin": build / "tests/bench",
            "build": build,
            "corpus": build / "corpus",
            "files": build / "files-110k",
            "files4k": build / "files-4k",
            "here": HERE,
            "peers": HERE / "peers",
            "python": sys.executable,
            "system_python": "/usr/bin/python3",
            "peers_python": build / "peers/bin/python",
        }

    def words(self, command):
        return shlex.split(command.format(**self.names))

    def shown(self, command):
        """The command as a person in the project's directory would type it."""
        words = self.words(command)
        return shlex.join(
            os.path.relpath(word, ROOT) if Path(word).is_relative_to(ROOT) else word
            for word in words
        )

    def run(self, command, memory=False):
        """The lines of JSON that the command prints, by name; nothing if it is not there."""
        words = self.words(command)
        missing = "not built" if "{bin}" in command else "not installed"
        if not Path(words[0]).exists():
            self.absent[command] = missing
            return {}
        if memory:
            words = [sys.executable, str(HERE / "memory.py"), *words]
        done = subprocess.run(words, stdout=subprocess.PIPE, text=True, cwd=self.build)
        lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        if not lines:
            if done.returncode == NOT_INSTALLED:
                self.absent[command] = missing
            else:
                self.absent[command] = "failed"
                print(f"{self.shown(command)}: status {done.returncode}", file=sys.stderr)
            return {}
        result = {}
        for line in lines:
            if "cpu_s" in line and "images" in line:
                line["cpu_ms_per_image"] = line["cpu_s"] / line["images"] * 1e3
            result[line.get("figure") or line["program"]] = line
        result[""] = lines[0]
        return result

    def make_missing(self, groups):
        makers = []
        if groups & {"agree", "limit", "decode", "simd", "bounds", "peers", "trace"}:
            photos = ROOT / "tests/data/photos"
            makers.append(("corpus", f"{{bin}}/make_corpus --photos {photos}"))
        if groups & {"files", "cold"}:
            makers.append(("files", "{bin}/make_files --bytes 110000"))
            makers.append(("files4k", "{bin}/make_files --bytes 4096"))
        if groups & {"engine"} and not self.names["peers_python"].exists():
            install = HERE / "peers/install.sh"
            subprocess.run([str(install), str(self.build / "peers"), "spdl"], check=True)
        for name, command in makers:
            directory = self.names[name]
            if directory.exists():
                continue
            print(f"making {directory}", flush=True)
            unfinished = directory.with_name(directory.name + ".unfinished")
            subprocess.run([*self.words(command), "--out", str(unfinished)], check=True)
            unfinished.rename(directory)


def measure(bench, group, rounds):
    """For each command its results in each round."""
    results = {name: [] for name in group.commands}
    for number in range(rounds):
        for name, command in group.commands.items():
            if number > 0 and name in group.once:
                continue
            if sys.stderr.isatty():
                print(f"\r{group.name} {number + 1}/{rounds}: {name:40}", end="", file=sys.stderr)
            results[name].append(bench.run(command))
    if sys.stderr.isatty():
        print(f"\r{'':70}\r", end="", file=sys.stderr)
    return results


def values(results, which, figure):
    """A figure of `command` or `command:line` in each round; empty when it was not measured."""
    command, _, line = which.partition(":")
    rounds = [result.get(line, {}) for result in results[command]]
    return [result[figure] for result in rounds if figure in result]


def compare(bench, group, row, results):
    """What a row of the table says."""

    def absent(name):
        return bench.absent.get(group.commands[name.partition(":")[0]], "–")

    ours = values(results, row.ours, row.figure)
    measured = {name: values(results, name, row.figure) for name in row.theirs}
    measured = {name: figures for name, figures in measured.items() if figures}
    best = max if row.higher_is_better else min
    other = best(measured, key=lambda name: statistics.median(measured[name]), default=None)
    said = {
        "name": row.name,
        "figure": row.figure,
        "ours": statistics.median(ours) if ours else None,
        "other_name": other or ", ".join(row.theirs[:1]),
        "ours_absent": absent(row.ours),
        "other_absent": absent(row.theirs[0]) if row.theirs else "",
        "other": statistics.median(measured[other]) if other else None,
        "gate": row.gate_text(),
        "ratio": None,
        "passed": None,
    }
    if not ours or (row.theirs and not other):
        return said
    ratios = [a / b for a, b in zip(ours, measured[other])] if other else ours
    said["ratio"] = statistics.median(ratios)
    said["least"], said["most"] = min(ratios), max(ratios)
    said["passed"] = row.passes(said["ratio"])
    return said


def number(value):
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def cells(said):
    ratio = "–"
    if said["ratio"] is not None and said["other"] is not None:
        ratio = f"{said['ratio']:.2f} ({said['least']:.2f}–{said['most']:.2f})"
    verdict = {None: "", True: "yes", False: "**no**"}[said["passed"]]
    ours = said["ours_absent"] if said["ours"] is None else number(said["ours"])
    other = said["other_absent"] if said["other"] is None else number(said["other"])
    figure = said["figure"].replace("_", " ")
    return [said["name"], figure, ours, said["other_name"], other, ratio, said["gate"], verdict]


HEAD = ["", "figure", "first", "compared with", "second", "ratio", "gate", "passed"]


def markdown(table):
    rows = [HEAD, ["---"] * len(table[0] if table else HEAD), *table]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def plain(table):
    rows = [[cell.replace("**", "") for cell in row] for row in [HEAD, *table]]
    widths = [max(len(row[i]) for row in rows) for i in range(len(HEAD))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows
    )


def seconds_table(results):
    """Wall and CPU time of each command beside each other: medians."""
    rows = []
    for name, rounds in results.items():
        lines = [result[""] for result in rounds if "wall_s" in result.get("", {})]
        if lines:
            wall, cpu = (statistics.median(x[key] for x in lines) for key in ("wall_s", "cpu_s"))
            rows.append([name, f"{wall:.2f}", f"{cpu:.2f}"])
    return rows


def output_of(*command):
    try:
        text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return "none"
    return text.splitlines()[0] if text else "none"


def machine():
    cpu = [x for x in Path("/proc/cpuinfo").read_text().splitlines() if x.startswith("model name")]
    system = platform.freedesktop_os_release().get("PRETTY_NAME", "Linux")
    return {
        "date": datetime.date.today().isoformat(),
        "CPU": f"{cpu[0].partition(':')[2].strip() if cpu else platform.machine()}"
        f", {len(os.sched_getaffinity(0))} logical CPUs",
        "memory": f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') >> 30} GiB",
        "system": f"{system}, Linux {platform.release().partition('-')[0]}",
        "compiler": output_of(os.environ.get("CXX", "c++"), "--version"),
        "libjpeg-turbo": output_of("pkg-config", "--modversion", "libjpeg"),
        "liburing": output_of("pkg-config", "--modversion", "liburing"),
        "FFmpeg": output_of("ffmpeg", "-version").partition(" Copyright")[0],
    }


def section(bench, group, results, said, memory):
    """A group as a part of docs/benchmarks.md."""
    text = [f"### {group.name}", "", group.about[0].upper() + group.about[1:] + ".", ""]
    text += [markdown([cells(one) for one in said]), ""]
    seconds = seconds_table(results)
    if seconds:
        text += ["| command | wall s | CPU s |" + " peak PSS MiB |" * bool(memory)]
        text += ["| --- | --- | --- |" + " --- |" * bool(memory)]
        for row in seconds:
            peak = [number(memory[row[0]])] if memory else []
            text.append("| " + " | ".join(row + peak) + " |")
        text.append("")
    text += ["```"]
    text += [bench.shown(command) for command in dict.fromkeys(group.commands.values())]
    text += ["```", ""]
    return "\n".join(text)


def peaks(bench, group):
    """The peak memory of each command, from a run of its own."""
    found = {}
    for name, command in group.commands.items():
        result = bench.run(command, memory=True)
        if result:
            found[name] = result[""]["peak_pss_mib"]
    return found


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    names = [group.name for group in GROUPS]
    parser.add_argument("build", type=Path, help="a build directory with `bench-programs` built")
    parser.add_argument("groups", nargs="*", metavar="group", help=f"of {' '.join(names)}")
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    for name in arguments.groups:
        if name not in names:
            parser.error(f"no group '{name}'; there are: {' '.join(names)}")
    return arguments


def main():
    arguments = parse_arguments()
    bench = Bench(arguments.build.resolve())
    groups = [group for group in GROUPS if group.name in (arguments.groups or [group.name])]
    if os.getloadavg()[0] > 0.5:
        print("warning: other programs are running; these figures will not repeat", file=sys.stderr)
    about = {**machine(), "rounds": arguments.rounds, "load before": os.getloadavg()[0]}
    bench.make_missing({group.name for group in groups})
    record, sections, failed = {"machine": about}, [], []
    for group in groups:
        rounds = min(group.rounds or arguments.rounds, arguments.rounds)
        results = measure(bench, group, rounds)
        memory = peaks(bench, group) if group.memory else {}
        said = [compare(bench, group, row, results) for row in group.rows]
        failed += [f"{group.name}: {one['name']}" for one in said if one["passed"] is False]
        failed += [name for name, c in group.commands.items() if bench.absent.get(c) == "failed"]
        print(f"\n{group.name}: {group.about}\n{plain([cells(one) for one in said])}")
        for name, peak in memory.items():
            print(f"peak PSS of {name}: {peak:.0f} MiB")
        record[group.name] = {"runs": results, "rows": said, "peak_pss_mib": memory}
        sections.append(section(bench, group, results, said, memory))
    facts = "\n".join(f"- {name}: {value}" for name, value in about.items())
    (bench.build / "bench.json").write_text(json.dumps(record, indent=1))
    (bench.build / "bench.md").write_text(f"{facts}\n\n" + "\n".join(sections))
    print(f"\nAll figures: {bench.build}/bench.json; as tables: {bench.build}/bench.md")
    if failed:
        sys.exit("gates not passed: " + "; ".join(failed))


if __name__ == "__main__":
    main()
