"""Groups of readers of archives and arrays, and of objects of web servers."""

from group import Group, Row, lower

# Of each format: its peers, those that read it in memory, and the sources that are measured.
ARCHIVES = {
    "tar": ("spdl", "webdataset"),
    "npy": ("spdl", "numpy"),
    "npz": ("spdl", "numpy"),
    "npz-deflated": ("spdl", "numpy"),
    "wav": ("spdl", "soundfile"),
    "tfrecord": ("tfrecord",),
}
# How many times fewer items the peers read, so that all programs run for tenths of a second.
SLOWER = {"spdl": 4, "numpy": 20, "webdataset": 40, "soundfile": 40, "tfrecord": 2}
# How often all items of a size are read: some tenths of a second.
ARCHIVE_PASSES = {"4k": 20, "110k": 10, "4m": 20}


def archive_passes(format, size, source):
    if format == "npz-deflated":
        return {"4k": 5, "110k": 2, "4m": 2}[size]
    faster = 20 if source == "memory" and format not in ("npz", "tfrecord") else 1
    return ARCHIVE_PASSES[size] * faster


def add_archive(group, format, size, source):
    passes = archive_passes(format, size, source)
    options = f"--dir {{archives}} --format {format} --size {size} --source {source}"
    what = f"{format} {size}, {source}"
    ours = f"lade, {what}"
    group.commands[ours] = f"{{bin}}/archives_bench {options} --passes {passes}"
    group.commands[f"bare, {what}"] = f"{{bin}}/archives_bare {options} --passes {passes}"
    theirs = []
    for peer in ARCHIVES[format]:
        if peer == "tfrecord" and source == "memory":
            continue  # it reads files only
        theirs.append(f"{peer}, {what}")
        fewer = max(passes // SLOWER[peer], 1)
        group.commands[theirs[-1]] = (
            f"{{venvs}}/archives/bin/python {{peers}}/archives.py --reader {peer} {options}"
            f" --passes {fewer}"
        )
    if theirs:
        group.rows.append(Row(what, ours, theirs, "items_per_s", 2))
        group.rows.append(lower(what, ours, theirs, "cpu_us_per_item"))
    group.rows.append(Row(what, ours, [f"bare, {what}"], "items_per_s"))
    if size == "110k":
        two = f"lade, {what}, two"
        group.commands[f"{two} threads"] = f"{group.commands[ours]} --threads 2"
        group.commands[f"{two} processes"] = f"{group.commands[ours]} --processes 2"
        row = Row(f"{what}, two threads", f"{two} threads", [f"{two} processes"], "items_per_s")
        row.gate = 0.95
        group.rows += [row, lower(row.name, row.ours, row.theirs, "cpu_us_per_item")]


def archives_group():
    about = "items of archives and arrays on one CPU, against readers of other libraries"
    group = Group("archives", about, same=("item_bytes",))
    for format in ARCHIVES:
        for size in ("4k", "110k"):  # in memory, others take as long
            if format != "npz-deflated":
                add_archive(group, format, size, "memory")
        for size in ARCHIVE_PASSES:
            add_archive(group, format, size, "disk")
    group.base = [
        f"spdl, {format} 110k, disk" for format in ("tar", "npy", "npz", "npz-deflated", "wav")
    ]
    group.base.append("tfrecord, tfrecord 110k, disk")
    return group


NETWORK_PEERS = ("curl", "obstore", "s3torchconnector", "pyarrow")
SERVER = "{python} {here}/with_server.py"


def add_objects(group, size, objects, depth, more="", slow=1):
    """Objects of nginx: lade, the bare loop and the peers, which read fewer: `slow` times."""
    what = f"{size}{', ranges' if more else ''}, {depth} at a time"
    nginx = f"{SERVER} --root {{objects}} --"
    options = f"--size {size} --depth {depth}{more}"
    ours, bare = f"lade, {what}", f"bare, {what}"
    for name, program in {ours: "net_bench", bare: "net_bare"}.items():
        group.commands[name] = (
            f"{nginx} {{bin}}/{program} --url @URL@ {options} --objects {objects}"
        )
    theirs = [bare]
    for peer in (*NETWORK_PEERS, "boto3"):
        threads = 32 if peer == "boto3" else depth
        if (peer == "boto3" and depth != 32) or (peer == "curl" and more):
            continue  # curl reads no ranges of a URL at a time
        count = max(objects // slow // (10 if peer == "boto3" else 1), 1)
        name = f"{peer}, {what}"
        group.commands[name] = (
            f"{nginx} {{venvs}}/stores/bin/python {{peers}}/stores.py --client {peer}"
            f" --endpoint @ENDPOINT@ --size {size} --depth {threads}{more} --objects {count}"
        )
        if peer != "boto3":
            theirs.append(name)
    group.rows.append(Row(what, ours, theirs, "objects_per_s", 0.95))
    group.rows.append(lower(what, ours, theirs, "cpu_us_per_object", round(1 / 0.95, 3)))
    for name in theirs[1:] + ([f"boto3, {what}"] if f"boto3, {what}" in group.commands else []):
        group.rows.append(Row(what, ours, [name], "objects_per_s"))
        group.rows.append(lower(what, ours, [name], "cpu_us_per_object"))


def add_remote_shards(group):
    """Samples of shards in random order by index, against their members in order."""
    what = "tar 110k, remote index"
    nginx = f"{SERVER} --root {{archives}} --"
    ours, theirs = f"lade, {what}", f"webdataset, {what}"
    group.commands[ours] = (
        f"{nginx} {{bin}}/shards_bench --shards '@ENDPOINT@/tar-110k/{{{{0..1}}}}.tar' --passes 4"
    )
    group.commands[theirs] = (
        f"{nginx} {{venvs}}/archives/bin/python {{peers}}/archives.py --reader webdataset"
        " --dir {archives} --format tar --size 110k --source @ENDPOINT@"
    )
    group.rows.append(Row(what, ours, [theirs], "items_per_s", 2))
    group.rows.append(lower(what, ours, [theirs], "cpu_us_per_item"))
    group.rows.append(lower(what, ours, [], "index_s"))


def network_group():
    about = "objects of a web server on this machine, CPU time of the client alone"
    group = Group("network", about)
    for depth in (1, 8, 32, 128):
        add_objects(group, "110k", 8000, depth, slow=4)
    add_objects(group, "4k", 20_000, 32, slow=4)
    add_objects(group, "100m", 16, 4)
    add_objects(group, "1g", 2, 8, " --ranges")
    group.base = [
        "bare, 110k, 8 at a time",
        "bare, 110k, 128 at a time",
        "bare, 4k, 32 at a time",
        "bare, 100m, 4 at a time",
        "bare, 1g, ranges, 8 at a time",
    ]
    slow = f"{SERVER} --slow"
    for delay, depth, objects in ((20, 64, 12_800), (200, 512, 20_480)):
        name = f"{delay} ms to the first byte, {depth} at a time"
        group.commands[name] = (
            f"{slow} '{{bin}}/slow_server --delay-ms {delay}' -- {{bin}}/net_bench --url @URL@"
            f" --depth {depth} --objects {objects} --delay-ms {delay}"
        )
        bare = f"bare, {name}"
        group.commands[bare] = (
            f"{slow} '{{bin}}/slow_server --delay-ms {delay}' -- {{bin}}/net_bare --url @URL@"
            f" --depth {depth} --objects {objects}"
        )
        group.rows.append(Row(name, name, [], "of_possible", 0.95))
        group.rows.append(Row(name, name, [bare], "objects_per_s"))
    group.commands["TLS"] = "{python} {here}/tls_cost.py {bin} {objects} 5000 32"
    group.rows.append(lower("TLS, of plain and cipher", "TLS", [], "ratio", 1.15))
    for figure in ("tls_us", "plain_us", "cipher_us"):
        group.rows.append(lower("TLS", "TLS", [], figure))
    group.commands["folder"] = "{python} {here}/remote_cost.py {bin} {corpus}"
    group.rows.append(Row("images to batches, without transfer", "folder", [], "of_local", 0.95))
    group.rows.append(Row("images to batches, latency covered", "folder", [], "of_possible", 0.95))
    for figure in ("local_cpu_us", "remote_cpu_us", "transfer_cpu_us", "server_cpu_us"):
        group.rows.append(lower("images to batches", "folder", [], figure))
    group.rows.append(Row("disk cache, second epoch", "folder", [], "cached_of_local", 0.95))
    group.rows.append(Row("disk cache, files alone", "folder", [], "cached_files_of_local"))
    group.rows.append(lower("disk cache, second epoch", "folder", [], "cached_cpu_us"))
    add_remote_shards(group)
    group.commands["signatures"] = "{bin}/sign_bench"
    group.rows.append(lower("signature of a request", "signatures", [], "cpu_us_per_request"))
    group.commands["stop"] = (
        f"{slow} '{{bin}}/slow_server --silent' -- {{bin}}/net_bench --url @URL@ --depth 256"
        " --objects 2560 --stop 20"
    )
    group.rows.append(lower("stop, 256 silent requests", "stop", [], "max_ms", 100))
    group.commands["stall"] = (
        f"{SERVER} --root {{objects}} -- {{bin}}/net_bench --url @URL@ --size 1g --ranges"
        " --depth 64 --objects 1 --budget-mib 256 --stall-ms 3000"
    )
    group.rows.append(
        lower("consumer stalls, budget 256 MiB", "stall", [], "mib_over_budget", 64)
    )
    return group
