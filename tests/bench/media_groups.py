"""Groups of video and audio. Each program decodes the same as the ffmpeg command before it is
measured, and then takes turns with the others."""

from group import Group, Row, lower

PEER = "{venvs}/video/bin/python {peers}/"
AGREE = "{venvs}/video/bin/python {here}/media_agree.py"
# All frames: the video, how often, and the shorter video of which the instructions are counted.
DECODED = {
    "h264 720p": ("h264-720p.mp4", 1, "h264-short.mp4"),
    "h264 454x256": ("h264-256p.mp4", 8, "h264-short.mp4"),
    "hevc 720p": ("hevc-720p.mp4", 1, "hevc-short.mp4"),
    "vp9 720p": ("vp9-720p.webm", 1, "vp9-short.webm"),
    "av1 720p": ("av1-720p.mp4", 1, "av1-short.mp4"),
}
DEMUXED = {"mp4": ("h264-720p.mp4", 1000), "webm": ("vp9-720p.webm", 1000)}
VIDEO_PEERS = ("torchcodec", "PyAV", "decord", "SPDL")
CLIP_PATH = "{media}/h264-720p.mp4"
# Clips of one video: how many for each thread, and the gate of one thread beside the best peer.
PICKED = {"even": (2, 1.4), "contiguous": (4, 1.3)}
FOLDER_CLIPS = 32
ENCODED = {"ultrafast": 8, "medium": 1}
# Sounds of ten seconds: how often each is decoded, by peers at most MOST_BY_PEERS times.
SOUNDS = {"wav.wav": 100, "flac.flac": 40, "mp3.mp3": 50, "aac.m4a": 60, "opus.opus": 30,
          "wav-16k.wav": 1000}  # fmt: skip
MOST_BY_PEERS = 100
THREADED_SOUNDS = ("flac.flac", "aac.m4a")
AUDIO_PEERS = ("torchcodec", "PyAV", "decord", "SPDL")
# decord returns the samples before the beginning of an .opus file, which all others drop.
MISSING_PEERS = {"opus.opus": ("decord",)}
# decord flushes its resampler after each frame, and so has other samples where one ends. It is
# measured all the same.
UNLIKE_FFMPEG = {file: ("decord",) for file in ("wav.wav", "flac.flac", "mp3.mp3", "aac.m4a")}


def add_pair(group, what, program, options, base=True):
    """lade's program and the floor's, with the same options; their names."""
    ours, bare = f"lade, {what}", f"bare, {what}"
    group.commands[ours] = f"{{bin}}/{program}_bench {options}"
    group.commands[bare] = f"{{bin}}/{program}_bare {options}"
    if base:
        group.base.append(bare)
    return ours, bare


def add_peers(group, what, program, peers, options):
    """Each peer's program with the same options; their names."""
    names = [f"{peer}, {what}" for peer in peers]
    for peer, name in zip(peers, names):
        group.commands[name] = f"{PEER}{program}.py --reader '{peer}' {options}"
    return names


def add_two_threads(group, what, program, peers, options, mode=""):
    """Two items at once, beside those who do the same, for information: the gates are for one
    thread. `mode` is an option of lade's program and of the floor's alone."""
    what, options = f"{what}, 2 threads", f"{options} --threads 2"
    ours, bare = add_pair(group, what, program, f"{mode}{options}", base=False)
    names = add_peers(group, what, program, peers, options)
    per_cpu = "audio_s_per_cpu_s" if program == "audio" else "items_per_cpu_s"
    for figure in (per_cpu, "items_per_s"):
        group.rows.append(Row(what, ours, [bare], figure))
        group.rows.append(Row(f"{what}, the best of them", ours, names, figure))


def counted(what):
    """The commands that decide by instructions."""
    return f"lade, {what}", f"bare, {what}"


def add_agreement(group, kind, path, what, ours, others, figure, gate):
    """Whether lade and the others decode a file as the ffmpeg command does."""
    for who, names in {"lade": [ours], "the others": others}.items():
        name = f"{who} as ffmpeg, {what}"
        commands = " -- ".join(group.commands[one] for one in names)
        group.commands[name] = f"{AGREE} {kind} {path} -- {commands}"
        group.once.add(name)
        group.rows.append(lower(name, name, [], figure, gate))


def add_decoding(group):
    for name, (file, items, short) in DECODED.items():
        options = f"--what decode --file {{media}}/{file} --items {items}"
        ours, bare = add_pair(group, f"all of {name}", "video", options)
        row = Row(f"all frames, {name}", ours, [bare], "items_per_cpu_s", 0.98)
        row.counted = counted(short)
        group.rows.append(row)


def add_demuxing(group):
    for container, (file, items) in DEMUXED.items():
        what = f"demux {container}, two"
        options = f"--file {{media}}/{file} --items {items}"
        for way in ("threads", "processes"):
            group.commands[f"{what} {way}"] = f"{{bin}}/demux_bench {options} --{way} 2"
        threads, processes = f"{what} threads", f"{what} processes"
        group.base.append(processes)
        group.rows.append(Row(threads, threads, [processes], "items_per_s", 0.9))
        group.rows.append(lower(threads, threads, [processes], "cpu_ms_per_item"))


def add_clips(group, pick, items, gate):
    what, mode = f"clip of h264 720p, {pick}", "--what clip "
    options = f"--file {CLIP_PATH} --pick {pick} --items"
    one = f"{options} {items} --threads 1"
    ours, bare = add_pair(group, what, "video", f"{mode}{one}")
    peers = add_peers(group, what, "video", VIDEO_PEERS, one)
    group.rows.append(lower(what, ours, [bare], "cpu_ms_per_item", 1.05))
    group.rows.append(Row(f"{what}, the best of them", ours, peers, "items_per_cpu_s", gate))
    group.rows.append(Row(f"{what}, the floor", bare, peers, "items_per_cpu_s"))
    add_two_threads(group, what, "video", VIDEO_PEERS, f"{options} {2 * items}", mode)
    add_agreement(group, pick, CLIP_PATH, what, ours, [bare, *peers], "wrong_frames", 0)


def add_folder(group, threads):
    what = f"folder of clips, {threads} thread{'s' * (threads > 1)}"
    options = f"--dir {{media}}/clips --threads {threads} --items {FOLDER_CLIPS}"
    ours, bare = add_pair(group, what, "clips", options)
    peers = add_peers(group, what, "video", VIDEO_PEERS, options)
    for figure in ("items_per_cpu_s", "items_per_s"):
        group.rows.append(Row(what, ours, [bare], figure, 0.95))
    best = f"{what}, the best of them"
    group.rows.append(Row(best, ours, peers, "items_per_cpu_s", 1.4))
    group.rows.append(Row(best, ours, peers, "items_per_s"))
    group.rows.append(Row(f"{what}, the floor", bare, peers, "items_per_cpu_s"))
    return ours, bare, peers


def add_folders(group):
    add_folder(group, 1)
    ours, bare, peers = add_folder(group, 2)
    first = "{media}/clips/00.mp4"
    add_agreement(group, "planes", first, "folder of clips", ours, [bare, *peers], "wrong_frames", 0)
    one = "--dir {media}/clips --threads 2 --pick contiguous --items 1 --batch 1"
    ours, bare = add_pair(group, "first clip", "clips", one, base=False)
    group.rows.append(lower("first clip", ours, [], "first_batch_ms", 60))
    group.rows.append(lower("first clip, bare", bare, [], "first_batch_ms"))


def add_remote(group):
    """How many bytes a web server sends for a clip of a video whose index is at its end."""
    options = "--file {media}/h264-720p.mp4 --pick contiguous"
    group.commands["lade, remote clip"] = (
        "{python} {here}/with_server.py --root {media} --bytes --"
        " {bin}/video_bench --what remote --file @ENDPOINT@/h264-720p.mp4 --pick contiguous"
    )
    group.commands["needed"] = f"{{bin}}/video_bare --what needed {options}"
    group.rows.append(lower("remote clip", "lade, remote clip", ["needed"], "bytes", 1.2))


def add_encoding(group):
    for preset, items in ENCODED.items():
        options = f"--file {{media}}/h264-720p.mp4 --preset {preset} --items {items}"
        ours, bare = add_pair(group, f"encode, {preset}", "encode", options)
        row = Row(f"encode h264 720p, {preset}", ours, [bare], "items_per_cpu_s", 0.98)
        row.counted = counted(f"encode, {preset}")
        group.rows.append(row)


COUNTED_BY = "media-instructions"


def media_instructions_group():
    """Files that are decoded once and three times. Those of video are short."""
    about = "instructions by callgrind: AVX2, one thread"
    group = Group(COUNTED_BY, about, deterministic=True)
    commands = {short: ("video", f"--what decode --file {{media}}/{short}")
                for _, _, short in DECODED.values()}  # fmt: skip
    for preset in ENCODED:
        options = f"--file {{media}}/h264-short.mp4 --preset {preset}"
        commands[f"encode, {preset}"] = ("encode", options)
    commands |= {file: ("audio", f"--file {{media}}/{file}") for file in SOUNDS}
    count = "{python} {here}/instructions.py --items 1 3 "
    for what, (program, options) in commands.items():
        ours, bare = add_pair(group, what, program, options, base=False)
        for name in (ours, bare):
            group.commands[name] = count + group.commands[name]
        group.rows.append(lower(what, ours, [bare], "instructions_per_item"))
    return group


def video_group():
    about = "frames, clips of 16 frames at 224x224, and batches of them"
    group = Group("video", about, same=("item_frames",), counted_by=COUNTED_BY)
    add_decoding(group)
    add_demuxing(group)
    for pick, (items, gate) in PICKED.items():
        add_clips(group, pick, items, gate)
    options = "--what convert --file {media}/h264-720p.mp4 --items 1000"
    ours, bare = add_pair(group, "convert", "video", options)
    group.rows.append(lower("720p to 224x224 RGB", ours, [bare], "cpu_ms_per_item", 0.5))
    add_folders(group)
    add_remote(group)
    add_encoding(group)
    return group


def add_sound(group, file, items):
    format, path = file.partition(".")[0], f"{{media}}/{file}"
    options = f"--file {path} --items"
    readers = [peer for peer in AUDIO_PEERS if peer not in MISSING_PEERS.get(file, ())]
    ours, bare = add_pair(group, format, "audio", f"{options} {items}")
    fewer = f"{options} {min(items, MOST_BY_PEERS)}"
    peers = add_peers(group, format, "audio", readers, fewer)
    if format == "wav-16k":  # libsndfile does not resample
        peers += add_peers(group, format, "audio", ["libsndfile"], f"{options} {items}")
        group.rows.append(Row(peers[-1], ours, [peers[-1]], "audio_s_per_cpu_s", 1))
    row = Row(format, ours, [bare], "audio_s_per_cpu_s", 0.98, counted=counted(file))
    group.rows.append(row)
    group.rows.append(Row(f"{format}, the best of them", ours, peers, "audio_s_per_cpu_s"))
    group.rows.append(Row(f"{format}, the floor", bare, peers, "audio_s_per_cpu_s"))
    if file in THREADED_SOUNDS:
        add_two_threads(group, format, "audio", readers, f"{options} {2 * items}")
    unlike = [f"{peer}, {format}" for peer in UNLIKE_FFMPEG.get(file, ())]
    alike = [name for name in (bare, *peers) if name not in unlike]
    add_agreement(group, "sound", path, format, ours, alike, "largest", 0.001)


def audio_group():
    about = "sounds of ten seconds to 16 kHz mono floats, and .wav files of one second"
    group = Group("audio", about, same=("item_frames",), counted_by=COUNTED_BY)
    for file, items in SOUNDS.items():
        add_sound(group, file, items)
    what, directory = "wav of 1 s", "--dir {media}/wav-1s"
    ours, bare = add_pair(group, what, "audio", f"{directory} --items 50000")
    readers = {"SPDL load_wav": (10_000, 2), "SPDL": (400, 20)}
    for reader, (items, gate) in readers.items():
        [name] = add_peers(group, what, "audio", [reader], f"{directory} --items {items}")
        group.rows.append(Row(name, ours, [name], "items_per_s", gate))
        group.rows.append(Row(f"{name}, the floor", bare, [name], "items_per_s"))
    group.rows.append(Row(what, ours, [bare], "items_per_s"))
    return group
