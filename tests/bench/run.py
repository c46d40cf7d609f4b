#!/usr/bin/env python3
"""Runs lade and what it is measured by, in turns, and compares them.

All commands of a group run once a round, one after the other, so that what disturbs the machine
disturbs all of them. A ratio is taken within a round; the median over the rounds is printed, with
the smallest and the largest. Before that, base commands are compared with themselves: a gate
inside that spread is decided by instructions (callgrind) where they are counted.

Writes BUILD/bench.json with every figure of every run, and a page of Markdown: docs/benchmarks.md
with new results. Ends with status 1 when a gate is not passed, and when a figure is missing for
any reason. groups.py has the groups and says how to add one."""

import argparse
import dataclasses
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

import machine
from commands import ROOT, Bench, measure, measure_base, measure_memory
from compare import HEAD, cells, compare, markdown, number, plain
from groups import GROUPS

ROUNDS = 5
RESULTS = "## Results\n"
DOCUMENT = ROOT / "docs/benchmarks.md"


def check_groups(groups):
    """Rows name commands that exist."""
    commands = {group.name: group.commands for group in groups}
    for group in groups:
        for row in group.rows:
            for which in (row.ours, *row.theirs):
                assert which.partition(":")[0] in group.commands, (group.name, row.name, which)
            for which in row.counted or ():
                assert which in commands[group.counted_by], (group.name, row.name, which)
        assert {*group.base, *group.once} <= {*group.commands}, group.name


def seconds_table(results, memory):
    """Wall and CPU time of each command, medians of the rounds, and its peak memory."""
    rows = []
    for name, rounds in results.rounds.items():
        lines = [next(iter(lines.values())) for lines in rounds]
        if lines and all("wall_s" in line and "cpu_s" in line for line in lines):
            wall, cpu = (statistics.median(line[key] for line in lines) for key in ("wall_s", "cpu_s"))
            peak = number(memory[name]) if name in memory else ""
            rows.append([name, f"{wall:.2f}", f"{cpu:.2f}", peak])
    return rows


class Section:
    """A group as it was measured."""

    def __init__(self, bench, group, rounds, counts):
        self.group = group
        self.load_before = machine.load()
        rounds = 1 if group.deterministic else rounds
        base = measure_base(bench, group, rounds) if group.base else None
        self.results = measure(bench, group, rounds)
        self.memory, missing = measure_memory(bench, group) if group.memory else ({}, {})
        self.verdicts = [
            compare(group, row, self.results, rounds, base, counts) for row in group.rows
        ]
        self.failures = [f"{group.name}: {v.name}: {v.failure}" for v in self.verdicts if v.failure]
        failures = {**missing, **self.results.failures}
        self.failures += [f"{group.name}: {name}: {why}" for name, why in failures.items()]
        self.commands = [bench.shown(command) for command in dict.fromkeys(group.commands.values())]

    def text(self):
        about = self.group.about
        return f"\n{self.group.name}: {about}\n{plain(HEAD, [cells(v) for v in self.verdicts])}"

    def markdown(self):
        group = self.group
        text = [f"### {group.name}", "", group.about[0].upper() + group.about[1:] + "."]
        text += [f"Load before: {self.load_before}.", ""]
        text += [markdown(HEAD, [cells(v) for v in self.verdicts]), ""]
        seconds = seconds_table(self.results, self.memory)
        if seconds:
            text += [markdown(["command", "wall s", "CPU s", "peak PSS MiB"], seconds), ""]
        return "\n".join([*text, "```", *self.commands, "```", ""])

    def record(self):
        return {
            "load before": self.load_before,
            "runs": self.results.rounds,
            "verdicts": [dataclasses.asdict(verdict) for verdict in self.verdicts],
            "peak_pss_mib": self.memory,
        }


def text_of(verdict):
    """The ratio or figure of a recorded verdict, and whether it passed."""
    if verdict["failure"]:
        return f"**{verdict['failure']}**"
    passed = {True: "passed", False: "**not passed**"}[verdict["passed"]]
    spread = f"{number(verdict['least'])}–{number(verdict['most'])}"
    return f"{number(verdict['ratio'])} ({spread}), {passed}"


def gated(record):
    """The recorded verdicts that have a gate, by what they are about."""
    return {
        (name, verdict["name"], verdict["figure"]): verdict
        for name, section in record["groups"].items()
        for verdict in section["verdicts"]
        if verdict["gate"]
    }


def both_machines(record, other):
    """What one machine passes and the other misses."""
    ours, theirs = gated(record), gated(other)
    rows = [
        [" ".join(key[:2]), key[2].replace("_", " "), ours[key]["gate"], *map(text_of, pair)]
        for key in ours
        if key in theirs
        for pair in [(ours[key], theirs[key])]
        if pair[0]["passed"] != pair[1]["passed"]
    ]
    if not rows:
        return ""
    head = ["", "figure", "gate", record["machine"]["CPU"], other["machine"]["CPU"]]
    intro = "What one of two machines passes and the other misses, at the same commit:"
    return "\n".join(["### Two machines", "", intro, "", markdown(head, rows), ""])


def falls_short(record):
    missed = [
        f"- {group}: {name}, {figure.replace('_', ' ')}: {text_of(verdict)}, gate {verdict['gate']}"
        for (group, name, figure), verdict in gated(record).items()
        if not verdict["passed"]
    ]
    count = len(gated(record))
    return [f"{count - len(missed)} of {count} gates are passed.", *([""] if missed else []), *missed]


class Page:
    """docs/benchmarks.md with the results of one go, which is written after each group."""

    def __init__(self, path, json_path, about, wanted):
        self.path, self.json_path, self.about, self.wanted = path, json_path, about, wanted
        prose, marker, _ = DOCUMENT.read_text().partition(RESULTS)
        assert marker, f"{DOCUMENT} has no line '{RESULTS.strip()}'"
        self.prose = prose + RESULTS
        self.sections = []

    def add(self, section, other):
        self.sections.append(section)
        self.write(other)

    def incomplete(self):
        missing = [name for name in self.wanted if name not in {s.group.name for s in self.sections}]
        return f"without {', '.join(missing)}" if missing else ""

    def record(self):
        groups = {section.group.name: section.record() for section in self.sections}
        return {"machine": self.about, "groups": groups}

    def failures(self):
        return [failure for section in self.sections for failure in section.failures]

    def missed(self):
        verdicts = [verdict for section in self.sections for verdict in section.verdicts]
        return [v.key for v in verdicts if v.passed is False and not v.failure]

    def write(self, other):
        self.about["load after (1, 5, 15 minutes)"] = machine.load()
        self.about["groups"] = self.incomplete() or "all"
        record = self.record()
        self.json_path.write_text(json.dumps(record, indent=1))
        facts = [f"- {name}: {value}" for name, value in self.about.items()]
        parts = ["", *facts, "", *falls_short(record), ""]
        parts += [both_machines(record, other)] if other else []
        parts += [section.markdown() for section in self.sections]
        self.path.write_text(self.prose + "\n".join(parts))


def require_built(build):
    """The programs are those of the sources."""
    said = subprocess.run(
        ["ninja", "-C", build, "-n", "bench-programs"], capture_output=True, text=True
    )
    if "no work to do" not in said.stdout:
        sys.exit(f"run.py: first: ninja -C {build} bench-programs\n{said.stderr}")


def load_other(path, commit):
    other = json.loads(path.read_text())
    if other["machine"]["commit"] != commit:
        sys.exit(f"run.py: {path} is of {other['machine']['commit']}, this is {commit}")
    return other


def parse_arguments(arguments, groups):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    names = [group.name for group in groups]
    parser.add_argument("build", type=Path, help="a build directory with `bench-programs` built")
    parser.add_argument("groups", nargs="*", metavar="group", help=f"of {' '.join(names)}")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--page", type=Path, help="where to write (BUILD/bench.md)")
    parser.add_argument(
        "--other", type=Path, help="bench.json of another machine: shows what only one passes"
    )
    parsed = parser.parse_args(arguments)
    for name in parsed.groups:
        if name not in names:
            parser.error(f"no group '{name}'; there are: {' '.join(names)}")
    if parsed.rounds < 1:
        parser.error("--rounds must be at least 1")
    return parsed


def chosen(groups, names):
    """The groups of those names, all without names, and what they are decided by."""
    wanted = {*names} or {group.name for group in groups}
    first = {g.counted_by for g in groups if g.name in wanted and g.is_counted()}
    return sorted(
        (g for g in groups if g.name in wanted | first), key=lambda g: g.name not in first
    )


def main(arguments=None, groups=GROUPS):
    check_groups(groups)
    parsed = parse_arguments(arguments, groups)
    build = parsed.build.resolve()
    require_built(build)
    bench = Bench(build)
    about = {**machine.describe(build), "rounds": parsed.rounds}
    other = load_other(parsed.other, about["commit"]) if parsed.other else None
    if os.getloadavg()[0] > 0.5:
        print("warning: other programs are running; these figures will not repeat", file=sys.stderr)
    wanted = chosen(groups, parsed.groups)
    bench.make_missing(wanted)
    page = Page(
        parsed.page or build / "bench.md", build / "bench.json", about, [g.name for g in groups]
    )
    measured = {}
    for group in wanted:
        section = Section(bench, group, parsed.rounds, measured.get(group.counted_by))
        measured[group.name] = section.results
        page.add(section, other)
        print(section.text(), flush=True)
    print(f"\nAll figures: {page.json_path}; as a page: {page.path}")
    for text, found in (("no figures", page.failures()), ("gates not passed", page.missed())):
        if found:
            print(f"{text}:", *found, sep="\n  ", file=sys.stderr)
    return 1 if page.failures() or page.missed() else 0


if __name__ == "__main__":
    sys.exit(main())
