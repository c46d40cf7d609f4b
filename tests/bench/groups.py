"""What is compared with what: the groups of run.py.

To add a group, write a function that returns a Group and put it into GROUPS:
- `commands`: a name and a command line for each program. {bin} is the directory of the benchmark
  programs, {corpus} the images, {files}, {files4k} and {files_mixed} trees of files, {archives}
  archives and arrays, {objects} what a web server has, {media} videos and sounds, {build} the
  build directory, {here} this directory, {peers} the peers' programs, {venvs}/PEER/bin/python
  their interpreters, {python} this one. What a command names is made or installed before.
- A program prints lines of JSON, each a figure's name (`figure`, or `program` for the only one)
  and its numbers, and ends with status 0.
- `rows`: what is compared. run.py does the rest: rounds, medians, gates, tables.
"""

import os

from data_groups import archives_group, network_group
from group import Group, Row, lower
from media_groups import audio_group, media_instructions_group, video_group
from trainer_groups import cuda_group, trainer_group

IMAGES = 4096  # of each run of a loader
LOADERS = {
    "val": "--transform val",
    "val fast": "--transform val --quality fast",
    "train": "--transform train --layout chw_f32",
    "resize": "--transform resize",
    "resize fast": "--transform resize --quality fast",
}


OWN_DECODER = " --decoder lade"  # of the bare loop, where the decoder is not what is compared


def loader(program, options, threads, images=IMAGES, batch=256):
    return (
        f"{{bin}}/{program} --dir {{corpus}} {options} --threads {threads}"
        f" --images {images} --batch {batch}"
    )


def instructions_group():
    about = "instructions of an image by callgrind: AVX2, one thread, no io_uring"
    group = Group("instructions", about, deterministic=True)
    for name in ("val", "val fast", "train", "resize", "resize fast"):
        programs = {"lade": "loader_bench", "bare": "bare_loop_avx2" + OWN_DECODER}
        for who, program in programs.items():
            group.commands[f"{who} {name}"] = (
                f"{{python}} {{here}}/instructions.py --images 32 160 {{bin}}/{program}"
                f" --dir {{corpus}} {LOADERS[name]} --threads 1 --batch 32"
            )
        group.rows.append(
            lower(name, f"lade {name}", [f"bare {name}"], "instructions_per_item", 1.05)
        )
    return group


def limit_group():
    about = "lade against a bare loop that does the same, with the same decoder and libjpeg-turbo"
    group = Group("limit", about)
    group.same = ("images", "elements")
    for threads in (1, 2):
        for name in ("val", "val fast", "train"):
            ours, theirs = f"lade {name} {threads}", f"bare {name} {threads}"
            group.commands[ours] = loader("loader_bench", LOADERS[name], threads)
            group.commands[theirs] = loader("bare_loop" + OWN_DECODER, LOADERS[name], threads)
            group.base.append(theirs)
            for figure in ("images_per_cpu_s", "images_per_s"):
                what = f"{name}, {threads} thread{'s' * (threads > 1)}"
                counted = (f"lade {name}", f"bare {name}")
                group.rows.append(Row(what, ours, [theirs], figure, 0.95, counted=counted))
    for name in ("val", "val fast", "train"):
        theirs = f"libjpeg-turbo {name} 1"
        group.commands[theirs] = loader("bare_loop", LOADERS[name], 1)
        group.rows.append(Row(f"{name}, 1 thread", f"lade {name} 1", [theirs], "images_per_cpu_s"))
    return group


def cores_group():
    cores = len(os.sched_getaffinity(0))
    about = f"one lade with {cores} threads against {cores} processes of the bare loop"
    group = Group("cores", about, same=("images", "elements"))
    for name in ("val", "train"):
        ours, theirs = f"lade {name}", f"bare {name}"
        group.commands[ours] = loader("loader_bench", LOADERS[name], cores, images=cores * IMAGES)
        bare = loader("bare_loop" + OWN_DECODER, LOADERS[name], 1)
        group.commands[theirs] = f"{{python}} {{here}}/side_by_side.py {cores} {bare}"
        group.base.append(theirs)
        what = f"{name}, {cores} CPUs"
        group.rows.append(Row(what, ours, [theirs], "images_per_s", 0.85))
        group.rows.append(Row(what, ours, [theirs], "images_per_cpu_s"))
    return group


def decode_group():
    group = Group("decode", "CPU time of an image, against libjpeg-turbo's own full decode to RGB")
    group.commands["libjpeg-turbo"] = loader("bare_loop", "--transform decode", 1)
    group.base, group.same = ["libjpeg-turbo"], ("images",)
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


def planes_group():
    about = "JPEG to planes by one thread, how much faster than libjpeg-turbo"
    group = Group("planes", about)
    group.commands["planes_bench"] = "{bin}/planes_bench"
    gates = {"corpus_two": 2.2, "quality_75_two": 1.8, "own_tables_two": 1.3, "corpus_one": 1.6,
             "corpus_two_avx2": 1.6, "corpus_two_plain": 0.8, "thumbnails_two": 1.0,
             "4000x3000_two": 2.0}
    for name, gate in gates.items():
        what = name.replace("_", " ")
        group.rows.append(Row(what, f"planes_bench:{name}", [], "ratio", gate))
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


# What each peer is run with, and the transforms that it has. All read the same images, two at a
# time, and make the same type of elements.
PEERS = {
    "torchvision": ("torch", "torch_loader.py --decoder tensor", ("train", "val", "resize")),
    "Pillow": ("torch", "torch_loader.py --decoder pillow", ("train", "val", "resize")),
    "DALI": ("dali", "dali_loader.py", ("train", "val", "resize")),
    "tf.data": ("tensorflow", "tensorflow_loader.py", ("train", "resize")),
    "SPDL": ("spdl", "spdl_loader.py --scale bilinear", ("resize",)),
    "OpenCV": ("opencv", "opencv_loader.py", ("val", "resize")),
}
OTHER_SIZES = {  # images keep their aspect: not to be held against
    "SPDL, own filter": ("spdl", "spdl_loader.py --scale own", ("resize",)),
}


def peer_command(venv, program, transform):
    return (
        f"{{venvs}}/{venv}/bin/python {{peers}}/{program} --dir {{corpus}}"
        f" --transform {transform} --threads 2 --images {IMAGES}"
    )


def add_peers(group, peers):
    """Their commands; their names by transform."""
    names = {}
    for peer, (venv, program, transforms) in peers.items():
        for transform in transforms:
            name = f"{peer} {transform}"
            group.commands[name] = peer_command(venv, program, transform)
            names.setdefault(transform, []).append(name)
    return names


def peers_group():
    group = Group("peers", "lade against other loaders, each at its documented best", memory=True)
    group.same = ("images", "elements")
    gates = {"train": 2.7, "resize": 2.0, "resize fast": 2.8, "val": 2.4, "val fast": 3.0}
    for name in gates:
        group.commands[f"lade {name}"] = loader("loader_bench", LOADERS[name], 2)
    peers, others = add_peers(group, PEERS), add_peers(group, OTHER_SIZES)
    for name, gate in gates.items():
        ours, transform = f"lade {name}", name.partition(" ")[0]
        best = f"{name}, the best of them"
        group.rows.append(
            Row(best, ours, peers[transform], "images_per_cpu_s", gate, lower_end=True)
        )
        for theirs in peers[transform] + others.get(transform, []):
            group.rows.append(Row(name, ours, [theirs], "images_per_cpu_s"))
    for name in ("train", "val", "resize"):
        group.rows.append(Row(name, f"lade {name}", peers[name], "images_per_s"))
        group.rows.append(lower(name, f"lade {name}", peers[name], "first_batch_ms"))
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


def budget_group():
    about = "peak memory beyond a budget of 64 MiB, one item, and 64 MiB for all else"
    group = Group("budget", about)
    kinds = {
        "files": "files of 200 MiB",
        "baseline.jpg": "JPEG, baseline",
        "progressive.jpg": "JPEG, progressive",
        "rgba.png": "PNG, RGBA",
        "lzw.tiff": "TIFF, LZW",
        "lossy.webp": "WebP, lossy",
        "lossless.webp": "WebP, lossless",
        "rgb.avif": "AVIF",
        "palette.gif": "GIF",
        "rgb.bmp": "BMP",
        "rgb.ppm": "PPM",
    }
    for kind, name in kinds.items():
        group.commands[kind] = (
            f"{{python}} {{here}}/budget.py {{bin}}/budget_bench --figures --only {kind}"
            " --parallel 1 64"
        )
        group.once.add(kind)
        for parallel in (1, 64):
            line = f"{parallel} at a time"
            row = lower(f"{name}, {line}", f"{kind}:{line}", [], "mib_over_allowed", 0)
            group.rows += [row, lower(row.name, row.ours, [], "peak_rss_mib")]
    return group


def trace_group():
    about = "training images with a trace of all of it, beside the same without"
    group = Group("trace", about)
    load = loader("loader_bench", LOADERS["train"], 1, images=10_000)
    for where, path in {"memory": "/dev/shm/lade-trace.json", "disk": "{build}/trace.json"}.items():
        group.commands[where] = f"{{python}} {{here}}/trace_cost.py {path} {load}"
        for figure in ("images_per_s", "images_per_cpu_s"):
            group.rows.append(Row(f"traced, to {where}", where, [], figure, 0.98))
    return group


def agree_group():
    about = "whether lade and the bare loop make the same pixels, in levels of 8 bits"
    group = Group("agree", about, deterministic=True)
    group.commands["pixels"] = "{python} {here}/agree.py {bin} {corpus}"
    gates = {"val_exact": 1, "val_f32": 1.01, "resize_exact": 1, "train_u8": 1, "train_f32": 1.01}
    for name in [*gates, "val_fast", "resize_fast"]:
        group.rows.append(lower(name, f"pixels:{name}", [], "largest", gates.get(name)))
        group.rows.append(lower(name, f"pixels:{name}", [], "mean"))
    return group


# Trees of files. The defaults were chosen with the first two, and hold for the third, whose files
# are of all sizes, too.
FILES = {"110 KB": "{files}", "4 KB": "{files4k}", "0.4 KB to 1 MB": "{files_mixed}"}


def readers_group(group, readers, base, loaders, tail):
    """The first of the loaders, which is told nothing, against all readers; the others beside it.
    `base`: readers that are often the best."""
    for size, directory in FILES.items():
        theirs = []
        for name, options in readers.items():
            theirs.append(f"{name}, {size}")
            if name in base:
                group.base.append(theirs[-1])
            group.commands[theirs[-1]] = (
                f"{{bin}}/files_bare --dir {directory} --reader {options} {tail}"
            )
        gate = 0.9
        for name, options in loaders.items():
            ours = f"{name}, {size}"
            group.commands[ours] = f"{{bin}}/files_bench --dir {directory} {options} {tail}"
            group.rows.append(Row(ours, ours, theirs, "files_per_s", gate))
            group.rows.append(lower(ours, ours, theirs, "cpu_s_per_10k"))
            gate = None
    return group


def files_group():
    # With `--threads 0`, a thread for each CPU.
    readers = {
        "1 thread": "threads --threads 1",
        "threads": "threads --threads 0",
        "threads, sizes known": "threads --threads 0 --sized",
        "16 threads": "threads --threads 16",
        "1 ring": "ring --parallel 64 --sized",
        "rings": "ring --threads 0 --parallel 32",
        "rings, sizes known": "ring --threads 0 --parallel 32 --sized",
        "chains": "chain --threads 0 --parallel 32",
    }
    loaders = {
        "lade": "",
        "lade, 1 reactor": "--reactors 1",
        "lade, fallback": "--reactor fallback",
        "lade, 64 at a time": "--parallel 64",
    }
    group = Group("files", "20,000 files in the page cache, five times")
    base = {"threads, sizes known", "rings, sizes known"}
    return readers_group(group, readers, base, loaders, "--passes 5")


def cold_group():
    readers = {
        "16 threads": "threads --threads 16",
        "64 threads": "threads --threads 64",
        "32 threads, O_DIRECT": "threads --threads 32 --direct",
        "128 threads, O_DIRECT": "threads --threads 128 --direct",
        "1 ring": "ring --parallel 64 --sized",
        "rings": "ring --threads 0 --parallel 128 --sized",
        "chains of 64, O_DIRECT": "chain --parallel 64 --direct",
        "chains of 256, O_DIRECT": "chain --parallel 256 --direct",
        "rings of chains, O_DIRECT": "chain --threads 0 --parallel 128 --direct",
    }
    loaders = {
        "lade": "",
        "lade, past the page cache": "--direct",
        "lade, fallback": "--reactor fallback",
        "lade, 64 at a time": "--parallel 64",
    }
    group = Group("cold", "20,000 files whose contents are not in the page cache")
    base = {"64 threads", "rings"}
    return readers_group(group, readers, base, loaders, "--drop-caches")


def stop_group():
    group = Group("stop", "how long it takes to leave a run, median of 20")
    for what, about in {"large": "8 files of 512 MiB", "libraries": "64 shared libraries"}.items():
        for reactor in "io_uring", "fallback":
            name = f"{about}, {reactor}"
            where = " --dir {build}/files-large" if what == "large" else ""
            group.commands[name] = f"{{bin}}/stop_bench --what {what} --reactor {reactor}{where}"
            group.rows.append(lower(name, name, [], "p50_ms", 100))
            group.once.add(name)
    return group


def in_allocations(name, ours, gate_ns=None):
    """CPU time beside that of an allocation: a floor of the machine, measured in the same round. The
    gate is in ns where an allocation takes 11."""
    gate = None if gate_ns is None else round(gate_ns / 11, 2)
    return lower(name, ours, ["floor:allocation"], "cpu_ns", gate)


def core_group():
    group = Group("core", "coroutines: times of one operation")
    group.commands["lade"] = "{bin}/core_bench"
    group.commands["floor"] = "{bin}/core_floor"
    group.commands["asio"] = "{bin}/asio_floor"
    group.commands["SPDL"] = "{venvs}/spdl/bin/python {peers}/spdl_engine.py --concurrency 8"
    group.base = ["floor", "asio"]
    for name, gate in {
        "await": 1.6 * 11,
        "generator": 8,
        "generator_chain": 30,
        "when_all": 30,
        "channel": 15,
        "map_64": 800,
        "map_8": 5000,
    }.items():
        group.rows.append(in_allocations(name, f"lade:{name}", gate))
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
    for name, gate in {"concurrent": 800, "sequential": 25}.items():
        for suffix, text in more.items():
            gated = gate if suffix in ("", "_reporting") else None
            group.rows.append(
                in_allocations(f"{name} stage{text}", f"stages:{name}{suffix}", gated)
            )
    for floor in ("mutex", "clock"):
        group.rows.append(
            lower("concurrent stage", "stages:concurrent", [f"floor:{floor}"], "cpu_ns")
        )
    group.commands["links"] = "{bin}/link_bench"
    for name in (
        "prefetch",
        "map",
        "map_completion",
        "flat_map",
        "flat_map_completion",
        "flat_map_of_one",
        "merge",
        "route",
        "tee",
    ):
        text = name.replace("_", " ") + ", one thread, an item"
        group.rows.append(lower(text, f"links:{name}", [], "cpu_ns"))
    group.commands["hand-off"] = "{bin}/hand_off_bench"
    group.base = ["hand-off"]
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
        lower("each, beside the item", "tasks:tasks_memory", [], "bytes_each", 768),
    ]
    group.commands["state"] = "{bin}/state_bench"
    for figure, gate in {"p50_us": 50, "p99_us": None, "json_bytes": 4096}.items():
        group.rows.append(lower("state, 100 million items", "state", [], figure, gate))
    for concurrency in (1, 2, 4, 8):
        options = f"--concurrency {concurrency}"
        ours, theirs = f"lade, concurrency {concurrency}", f"SPDL, concurrency {concurrency}"
        group.commands[ours] = f"{{bin}}/pipeline_bench {options}"
        group.commands[theirs] = f"{{venvs}}/spdl/bin/python {{peers}}/spdl_engine.py {options}"
        name = f"one stage, concurrency {concurrency}"
        group.rows.append(Row(name, ours, [theirs], "items_per_s", 150))
        group.rows.append(Row(name, ours, [theirs], "items_per_cpu_s"))
    return group


def autotune_group():
    about = "automatic concurrency, against the best of many fixed ones, on simulated servers"
    group = Group("autotune", about)
    group.commands["servers"] = "{bin}/autotune_bench"
    group.once = {"servers"}
    for server in ("wide", "narrow", "crowded", "uneven", "narrow, then wide", "wide, in parts",
                   "narrow, in parts"):
        figures = f"servers:{server}"
        group.rows += [
            Row(f"{server}, after ten seconds, of the best", figures, [], "of_best", 0.9),
            Row(f"{server}, until then, of the default", figures, [], "converging_of_default", 0.95),
        ]
    return group


GROUPS = [
    agree_group(),
    instructions_group(),
    limit_group(),
    cores_group(),
    decode_group(),
    planes_group(),
    simd_group(),
    bounds_group(),
    budget_group(),
    peers_group(),
    core_group(),
    engine_group(),
    autotune_group(),
    trace_group(),
    files_group(),
    cold_group(),
    stop_group(),
    archives_group(),
    network_group(),
    media_instructions_group(),
    video_group(),
    audio_group(),
    trainer_group(),
    cuda_group(),
]
