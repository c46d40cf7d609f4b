"""Describes what figures were measured on: the machine, the commit, the versions."""

import json
import os
import platform
import subprocess
from importlib import metadata
from pathlib import Path

from commands import PEERS, ROOT

# What the kernels and the bare loop choose their instructions by.
CPU_FLAGS = ("avx2", "fma", "f16c", "avx512bw", "avx512dq", "avx512vl", "avx512_vnni",
             "avx512vbmi")  # fmt: skip
PACKAGES = ("torch", "torchvision", "pillow", "nvidia-dali-cuda120", "tensorflow-cpu", "spdl",
            "spdl-io", "opencv-python-headless", "numpy", "webdataset", "soundfile", "tfrecord",
            "boto3", "obstore", "pyarrow", "s3torchconnectorclient", "torchcodec", "av",
            "eva-decord")  # fmt: skip
# The libraries that lade calls, by the names that pkg-config knows them by.
LIBRARIES = {"libjpeg-turbo": "libjpeg", "libtiff": "libtiff-4", "libwebp": "libwebp",
             "libavif": "libavif", "zlib": "zlib", "liburing": "liburing", "fmt": "fmt",
             "libdeflate": "libdeflate", "libcurl": "libcurl", "OpenSSL": "openssl"}  # fmt: skip


def output_of(*command):
    """The first line that a command prints, or "none"."""
    try:
        text = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout
    except (OSError, subprocess.CalledProcessError):
        return "none"
    return text.splitlines()[0] if text else ""


def cpu():
    fields = {}
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        name, _, value = line.partition(":")
        fields.setdefault(name.strip(), value.strip())
    flags = fields.get("flags", "").split()
    return fields.get("model name", platform.machine()), [x for x in CPU_FLAGS if x in flags]


def commit():
    """The commit, and whether the files are those of it."""
    changed = output_of("git", "status", "--porcelain", "--untracked-files=no")
    state = {"": "clean tree", "none": "no git"}.get(changed, "**changed files**")
    return f"{output_of('git', 'rev-parse', 'HEAD')}, {state}"


def compiler(build):
    """The compiler of the build directory and how it optimises."""
    try:
        commands = json.loads((build / "compile_commands.json").read_text())
        options = json.loads((build / "meson-info/intro-buildoptions.json").read_text())
    except (OSError, ValueError):
        return "none"
    program = next(w for w in commands[0]["command"].split() if not w.endswith("ccache"))
    values = {option["name"]: option["value"] for option in options}
    return f"{output_of(program, '--version')}, buildtype {values['buildtype']}"


def peer_versions(build):
    """Of all packages that the peers' programs measure or need; several of one if they differ."""
    found = {}
    for peer in PEERS:
        for folder in (build / "peers" / peer / "lib").glob("python*/site-packages"):
            for package in metadata.distributions(path=[str(folder)]):
                name = package.metadata["Name"].lower().replace("_", "-")
                if name in PACKAGES:
                    found.setdefault(name, set()).add(package.version)
    texts = [f"{name} {' and '.join(sorted(found[name]))}" for name in PACKAGES if name in found]
    return ", ".join(texts) or "none"


def nginx_version():
    """nginx prints its version to stderr."""
    try:
        said = subprocess.run(["nginx", "-v"], capture_output=True, text=True).stderr
    except OSError:
        return "none"
    return said.strip().rpartition("/")[2]


def load():
    return ", ".join(f"{value:.2f}" for value in os.getloadavg())


def describe(build):
    model, flags = cpu()
    system = platform.freedesktop_os_release().get("PRETTY_NAME", "Linux")
    return {
        "commit": commit(),
        "CPU": f"{model}, {len(os.sched_getaffinity(0))} logical CPUs",
        "CPU flags": ", ".join(flags) or "none of those that lade looks for",
        "memory": f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') >> 30} GiB",
        "system": f"{system}, Linux {platform.release().partition('-')[0]},"
        f" {' '.join(platform.libc_ver())}",
        "compiler": compiler(build),
        **{name: output_of("pkg-config", "--modversion", LIBRARIES[name]) for name in LIBRARIES},
        "nginx": nginx_version(),
        "FFmpeg": output_of("ffmpeg", "-version").partition(" Copyright")[0],
        "valgrind": output_of("valgrind", "--version"),
        "Python": platform.python_version(),
        "peers": peer_versions(build),
        "load before (1, 5, 15 minutes)": load(),
    }
