"""Runs the programs of a group. A program that is missing, fails, or prints something else than
figures has failed: nothing stands in for figures that were not measured."""

import json
import math
import mmap
import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
NOT_INSTALLED = 77
TIMEOUT_S = 3600


class Failed(Exception):
    """Why a command, or a comparison, has no figures."""


def ended_how(status):
    if status == NOT_INSTALLED:
        return "not installed"
    return f"ended by {signal.Signals(-status).name}" if status < 0 else f"status {status}"


def parse(output):
    """Lines of JSON by their names. Other lines are ignored."""
    lines = {}
    for text in output.splitlines():
        if not text.startswith("{"):
            continue
        try:
            line = json.loads(text)
        except json.JSONDecodeError:
            raise Failed(f"no JSON: {text[:60]}") from None
        name = line.get("figure") or line["program"]
        if name in lines:
            raise Failed(f"two lines '{name}'")
        lines[name] = with_derived(line)
    if not lines:
        raise Failed("printed no figures")
    return lines


def with_derived(line):
    if "cpu_s" in line and line.get("images"):
        line["cpu_ms_per_image"] = line["cpu_s"] / line["images"] * 1e3
    if "layout" in line:
        line["elements"] = line["layout"].rpartition("_")[2]
    return line


def line_of(lines, name):
    """The line of that name, or without a name the first one."""
    if not name:
        return next(iter(lines.values()))
    if name not in lines:
        raise Failed(f"no line '{name}'")
    return lines[name]


def figure_of(lines, name, figure):
    value = line_of(lines, name).get(figure)
    if not isinstance(value, (int, float)) or not math.isfinite(value):
        raise Failed(f"{figure} is {'missing' if value is None else value}")
    return value


def touch_memory(mib=1024):
    """Writes to so much memory and gives it back. A virtual machine's host may have taken what was
    not used for some seconds, and is slow to return it: the first program to use it would pay for
    those behind it."""
    piece = bytes(1 << 20)
    with mmap.mmap(-1, mib << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as memory:
        memory.madvise(mmap.MADV_HUGEPAGE)
        for _ in range(mib):
            memory.write(piece)


class Bench:
    """The programs of a build directory and what they read."""

    def __init__(self, build):
        self.build = build
        self.names = {
            "bin": build / "tests/bench",
            "build": build,
            "corpus": build / "corpus",
            "archives": build / "archives",
            "objects": build / "objects",
            "media": build / "media",
            "files": build / "files-110k",
            "files4k": build / "files-4k",
            "files_mixed": build / "files-mixed",
            "here": HERE,
            "peers": HERE / "peers",
            "venvs": build / "peers",
            "python": sys.executable,
        }

    def words(self, command):
        return shlex.split(command.format(**self.names))

    def shown(self, command):
        """The command as a person in the project's directory would type it."""
        words = shlex.split(command.format(**{**self.names, "python": "python3"}))
        return shlex.join(
            os.path.relpath(word, ROOT) if Path(word).is_relative_to(ROOT) else word
            for word in words
        )

    def run(self, command, memory=False):
        """The lines of JSON that the command prints, by name. Throws Failed."""
        words = self.words(command)
        if not Path(words[0]).exists():
            raise Failed("not built" if "{bin}" in command else "not installed")
        if memory:
            words = [sys.executable, str(HERE / "memory.py"), *words]
        touch_memory()
        try:
            done = subprocess.run(
                words, stdout=subprocess.PIPE, text=True, cwd=self.build, timeout=TIMEOUT_S
            )
        except subprocess.TimeoutExpired:
            raise Failed(f"not done after {TIMEOUT_S} s") from None
        if done.returncode != 0:
            raise Failed(ended_how(done.returncode))
        return parse(done.stdout)

    def make_missing(self, groups):
        """What the commands of the groups read, and the peers that they run."""
        commands = "\n".join(c for group in groups for c in group.commands.values())
        makers = {
            "corpus": f"{{bin}}/make_corpus --photos {ROOT / 'tests/data/photos'}",
            "archives": "{python} {here}/make_archives.py",
            "objects": "{python} {here}/make_objects.py",
            "media": f"{{python}} {{here}}/make_media.py --photos {ROOT / 'tests/data/photos'}",
            "files": "{bin}/make_files --bytes 110000",
            "files4k": "{bin}/make_files --bytes 4096",
            "files_mixed": "{bin}/make_files --bytes 20000 --spread 50",
        }
        for name, command in makers.items():
            if f"{{{name}}}" in commands and not self.names[name].exists():
                self.make(self.names[name], command)
        peers = [peer for peer in PEERS if f"{{venvs}}/{peer}/" in commands]
        if peers:  # one that cannot be installed fails when its command is run
            subprocess.run([HERE / "peers/install.sh", self.names["venvs"], *peers])

    def make(self, directory, command):
        print(f"making {directory}", flush=True)
        unfinished = directory.with_name(directory.name + ".unfinished")
        subprocess.run([*self.words(command), "--out", str(unfinished)], check=True)
        unfinished.rename(directory)


PEERS = ("torch", "dali", "tensorflow", "spdl", "opencv", "archives", "stores", "video")


class Results:
    """What the commands of a group printed in each round, and why those failed that did."""

    def __init__(self):
        self.rounds = {}
        self.failures = {}

    def add(self, bench, name, command):
        """Runs the command once more, unless it has failed."""
        if name in self.failures:
            return
        try:
            self.rounds[name] = [*self.rounds.get(name, []), bench.run(command)]
        except Failed as why:
            self.failures[name] = f"{why}, round {len(self.rounds.get(name, [])) + 1}"
            print(f"{bench.shown(command)}: {self.failures[name]}", file=sys.stderr)

    def figures(self, which, figure):
        """A figure of `command` or `command:line` in each round. Throws Failed if one is not
        there."""
        command, _, line = which.partition(":")
        if command in self.failures:
            raise Failed(f"{command}: {self.failures[command]}")
        values = []
        for number, lines in enumerate(self.rounds.get(command, []), 1):
            try:
                values.append(figure_of(lines, line, figure))
            except Failed as why:
                raise Failed(f"{which}: {why}, round {number}") from None
        return values

    def alike(self, which, key):
        """What `key` is in a line, which must be the same in all rounds."""
        command, _, line = which.partition(":")
        found = {line_of(lines, line).get(key) for lines in self.rounds[command]}
        if len(found) != 1 or None in found:
            raise Failed(f"{which}: {key} is {found}")
        return found.pop()


def measure(bench, group, rounds):
    """Runs all commands of a group once a round, one after the other."""
    results = Results()
    for number in range(rounds):
        for name, command in group.commands.items():
            if number > 0 and name in group.once:
                continue
            progress(f"{group.name} {number + 1}/{rounds}: {name}")
            results.add(bench, name, command)
    progress("")
    return results


def measure_base(bench, group, rounds):
    """Runs the base commands of a group twice a round, as if they were compared: two Results."""
    first, second = Results(), Results()
    for number in range(rounds):
        for name in group.base:
            progress(f"{group.name} {number + 1}/{rounds}: {name} against itself")
            for results in (first, second):
                results.add(bench, name, group.commands[name])
    progress("")
    return first, second


def measure_memory(bench, group):
    """The peak memory of each command in MiB, from a run of its own, and failures."""
    peaks, failures = {}, {}
    for name, command in group.commands.items():
        progress(f"{group.name}, memory: {name}")
        try:
            peaks[name] = figure_of(bench.run(command, memory=True), "", "peak_pss_mib")
        except Failed as why:
            failures[name] = f"{why}, memory"
    progress("")
    return peaks, failures


def progress(text):
    if sys.stderr.isatty():
        print(f"\r{text:78.78}" if text else f"\r{'':78}\r", end="", file=sys.stderr)
