# ci_test.py ROOT: which commands .ci/run runs at which commit, and that it ends at the first that
# fails. The commands only pretend to work. And that .ci/skips lists what sanitizers make impossible.
import fnmatch
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(sys.argv[1])
sys.path[:0] = [str(ROOT)]
import modules  # noqa: E402

OPTIONAL = [module.name for module in modules.read(ROOT).values() if module.option]

# Writes a report with one case that has passed, unless the command is $FAILS. The report is newer
# than the call, also by a coarse clock.
DEV = """#!/usr/bin/env bash
echo "${LADE_REACTOR:+$LADE_REACTOR: }$*" >>log
[ "$1" != "$FAILS" ] || exit 1
mkdir -p "build-$1"
touch begin
until [ "build-$1/a.junit.xml" -nt begin ]; do
  echo '<testsuite><testcase classname="Map" name="Works"/></testsuite>' >"build-$1/a.junit.xml"
done
"""

GIT = """#!/bin/sh
echo "$HASH"
"""

CORE = " --suite core"
WAITING = " --suite io --suite http --suite formats --suite examples"
DECODERS = (CORE + WAITING).replace("--", "--no-")
# Knows the tests of these programs.
MESON = """#!/bin/sh
for name in $PROGRAMS; do echo "lade:examples / $name"; done
"""

PROGRAMS = ["ranks", "train_cuda", "train_libtorch"]

# At every commit, in this order. One more check has no command: that nothing is left out.
ALWAYS = ["test --no-suite slow", "demo", "format --check", "docs"]
# In the turns without a sanitizer.
FALLBACK = "fallback" + CORE + WAITING
# The first digit of a commit's hash, and the commands whose turn it is.
TURNS = {"0": ["asan" + CORE, "fallback: asan" + CORE],
         "1": ["asan" + WAITING, "fallback: asan" + WAITING],
         "2": ["asan" + DECODERS],
         "3": ["tsan" + CORE, "fallback: tsan" + CORE],
         "4": ["tsan" + WAITING, "fallback: tsan" + WAITING],
         "5": ["tsan" + DECODERS],
         "6": [FALLBACK, "clang" + CORE],
         "7": [FALLBACK, "clang" + WAITING],
         "8": [FALLBACK, "clang" + DECODERS + " --no-suite slow"],
         "9": [FALLBACK, "bench-programs", "bench cuda trainer --rounds 3"],
         "a": [FALLBACK, "fuzz"],
         "b": [FALLBACK, "test --suite slow"],
         "c": [FALLBACK, "fallback" + DECODERS],
         "d": [FALLBACK, "bare"],
         "e": [FALLBACK, *(f"without {module}" for module in OPTIONAL)],
         "f": [FALLBACK, "tidy"]}


# What tests ask before they are skipped, and the commands under which the answer is no.
GUARDS = {"allocations_can_fail)": ["tsan"], "memory_can_be_measured()": ["asan", "tsan"]}


SKIPS = [line.split("#")[0].split() for line in (ROOT / ".ci/skips").read_text().splitlines()]


def listed(words, test, command):
    """Whether a line of .ci/skips lists SUITE.NAME, or INSTANCE/SUITE.NAME/PARAMETER, for the command."""
    names, commands = words[:1], words[1:]
    cases = [test, f"*/{test}/*"]
    return (any(fnmatch.fnmatch(case, name) or fnmatch.fnmatch(name, case) for name in names for case in cases)
            and any(fnmatch.fnmatch(command, each) for each in commands))


def tests_behind(guard):
    """SUITE.NAME of the tests that ask the guard."""
    for path in (ROOT / "tests").rglob("*_test.cpp"):
        for test in path.read_text().split("\nTEST")[1:]:
            names = re.match(r"\w*\((\w+), (\w+)\)", test)
            if names and f"if (!test::{guard}" in test:
                yield ".".join(names.groups())


class Ci(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.root = pathlib.Path(directory.name)
        shutil.copytree(ROOT / ".ci", self.root / ".ci")
        for name in ["modules.py", "modules.ini"]:
            shutil.copy(ROOT / name, self.root)
        for path, text in {"dev": DEV, "bin/git": GIT, "bin/meson": MESON, "bin/nvcc": ""}.items():
            (self.root / path).parent.mkdir(exist_ok=True)
            (self.root / path).write_text(text)
            (self.root / path).chmod(0o755)

    def run_ci(self, *arguments, commit="0000", fails="", programs=PROGRAMS):
        """The exit status, the last line of output, and the commands that were run."""
        (self.root / "log").unlink(missing_ok=True)
        environment = {**os.environ, "PATH": f"{self.root}/bin:{os.environ['PATH']}",
                       "HASH": commit, "FAILS": fails, "PROGRAMS": " ".join(programs)}
        result = subprocess.run([self.root / ".ci/run", *arguments], capture_output=True, text=True,
                                env=environment)
        log = (self.root / "log").read_text().splitlines()
        return result.returncode, result.stdout.splitlines()[-1], log

    def test_what_takes_long_takes_turns(self):
        for digit, commands in TURNS.items():
            expected = [*ALWAYS, *commands]
            self.assertEqual(self.run_ci(commit=digit + "3f6"),
                             (0, f"{len(expected) + 1} passed, 0 failed", expected))

    def test_all_of_them_are_run_on_demand(self):
        status, last, log = self.run_ci("--all")
        turns = [command for each in TURNS.values() for command in each]
        self.assertEqual((status, last), (0, f"{len(log) + 1} passed, 0 failed"))
        self.assertEqual(sorted(log), sorted([*ALWAYS, *dict.fromkeys(turns)]))  # each once

    def test_the_first_command_that_fails_is_the_last(self):
        self.assertEqual(self.run_ci(fails="format"), (1, "3 passed, 1 failed", ALWAYS[:3]))

    def test_a_program_that_was_not_built_is_a_failure(self):
        for missing in PROGRAMS:
            others = [f"{each}_beside" if each == missing else each for each in PROGRAMS]
            self.assertEqual(self.run_ci(programs=others), (1, "1 passed, 1 failed", ALWAYS[:1]))

    def test_what_a_sanitizer_makes_impossible_may_be_skipped_with_it(self):
        for guard, commands in GUARDS.items():
            for test in tests_behind(guard):
                for command in commands:
                    self.assertTrue(any(listed(line, test, command) for line in SKIPS), f"{test}, {command}")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
