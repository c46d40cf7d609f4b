# run.py with programs that only pretend to measure: whatever is missing is a failure.
import contextlib
import io
import json
import os
import pathlib
import re
import stat
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

import budget
import machine
import run
from groups import GROUPS, Group, Row, lower


def line(value, **fields):
    return json.dumps({"program": "p", "figure": "f", "rate": value, "images": 8, **fields})


# Prints what it is to print when it is run for the first time, the second, ..., and then the last
# again; ends with that turn's status, or by the signal of that negative number.
PROGRAM = """#!/bin/sh
turn=$(cat "$0.turn" 2>/dev/null || echo 0)
[ -e "$0.$((turn + 1))" ] && echo $((turn + 1)) >"$0.turn"
cat "$0.$turn"
status=$(cat "$0.$turn.status")
[ "$status" -ge 0 ] || kill "$status" $$
exit "$status"
"""


class RunTest(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)
        self.build = pathlib.Path(self.directory.name)
        (self.build / "tests/bench").mkdir(parents=True)
        (self.build / "build.ninja").write_text("build bench-programs: phony\n")
        self.group = Group("group", "a group", {"a": "{bin}/a", "b": "{bin}/b"})
        self.group.rows = [Row("a row", "a", ["b"], "rate", 0.95)]
        about = {"commit": "0, clean tree", "CPU": "a CPU"}
        mock.patch.object(run.machine, "describe", lambda build: dict(about)).start()
        self.addCleanup(mock.patch.stopall)

    def program(self, name, *turns):
        """A program that behaves like each of the turns, then like the last one."""
        path = self.build / "tests/bench" / name
        for old in path.parent.glob(f"{name}.*"):
            old.unlink()
        for number, turn in enumerate(turns):
            output, status = turn if isinstance(turn, tuple) else (turn, 0)
            path.with_name(f"{name}.{number}").write_text(output + "\n")
            path.with_name(f"{name}.{number}.status").write_text(str(status))
        path.write_text(PROGRAM)
        path.chmod(path.stat().st_mode | stat.S_IXUSR)

    def run_groups(self, *more, groups=None, rounds=2):
        """The exit status, what was printed, and the page."""
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            status = run.main(
                [str(self.build), *more, "--rounds", str(rounds)], groups or [self.group]
            )
        return status, printed.getvalue(), (self.build / "bench.md").read_text()

    def assert_fails(self, why, **options):
        status, printed, page = self.run_groups(**options)
        self.assertEqual(status, 1)
        self.assertIn(why, printed)
        self.assertIn(why, page)
        self.assertIn("**no**", page)

    def test_equal_programs_pass(self):
        self.program("a", line(100))
        self.program("b", line(100))
        status, printed, page = self.run_groups()
        self.assertEqual((status, printed.count("yes")), (0, 1))
        self.assertIn("| a row | rate | 100 | b | 100 | 1.00 (1.00–1.00) | ≥ 0.95 | yes |", page)

    def test_a_slower_program_does_not_pass(self):
        self.program("a", line(90))
        self.program("b", line(100))
        status, printed, page = self.run_groups()
        self.assertEqual(status, 1)
        self.assertIn("gates not passed:\n  group: a row, rate", printed)
        self.assertIn("0 of 1 gates are passed", page)

    def test_a_missing_program_fails(self):
        self.program("a", line(100))
        self.assert_fails("b: not built, round 1")

    def test_a_missing_peer_fails(self):
        self.program("a", line(100))
        self.group.commands["b"] = "{venvs}/none/bin/python"
        self.assert_fails("b: not installed, round 1")

    def test_a_peer_that_says_that_it_is_not_installed_fails(self):
        self.program("a", line(100))
        self.program("b", (line(100), 77))
        self.assert_fails("b: not installed, round 1")

    def test_a_crash_after_the_first_line_fails(self):
        self.program("a", line(100), (line(100), -11))
        self.program("b", line(100))
        self.assert_fails("a: ended by SIGSEGV, round 2")

    def test_a_status_fails(self):
        self.program("a", (line(100), 3))
        self.program("b", line(100))
        self.assert_fails("a: status 3, round 1")

    def test_a_program_without_figures_fails(self):
        self.program("a", "all is well")
        self.program("b", line(100))
        self.assert_fails("a: printed no figures, round 1")

    def test_a_line_that_is_cut_fails(self):
        self.program("a", line(100)[:-5])
        self.program("b", line(100))
        self.assert_fails("a: no JSON")

    def test_a_line_that_is_missing_in_one_round_fails(self):
        self.group.rows = [Row("a row", "a:f", ["b:f"], "rate", 0.95)]
        self.program("a", line(100), line(100, figure="another"))
        self.program("b", line(100))
        self.assert_fails("a:f: no line 'f', round 2")

    def test_a_line_that_comes_twice_fails(self):
        self.program("a", line(100) + "\n" + line(1))
        self.program("b", line(100))
        self.assert_fails("a: two lines 'f'")

    def test_a_figure_that_is_missing_or_no_number_fails(self):
        self.program("b", line(100))
        self.program("a", '{"program": "p", "other": 1}')
        self.assert_fails("a: rate is missing, round 1")
        self.program("a", line(float("nan")))
        self.assert_fails("a: rate is nan")

    def test_a_figure_of_0_to_divide_by_fails(self):
        self.program("a", line(100))
        self.program("b", line(0))
        self.assert_fails("divided by 0")

    def test_unequal_rounds_fail(self):
        self.program("a", line(100))
        self.program("b", line(100))
        self.group.once = {"b"}
        self.assert_fails("2 rounds against 1")

    def test_one_of_several_peers_that_fails_is_a_failure(self):
        self.group.commands["c"] = "{bin}/c"
        self.group.rows = [Row("a row", "a", ["b", "c"], "rate", 0.95)]
        self.program("a", line(100))
        self.program("b", line(50))
        self.program("c", (line(50), 1))
        self.assert_fails("c: status 1")

    def test_the_best_of_several_counts(self):
        self.group.commands["c"] = "{bin}/c"
        self.group.rows = [Row("a row", "a", ["b", "c"], "rate", 1.9)]
        self.program("a", line(100))
        self.program("b", line(50))
        self.program("c", line(60))
        status, _, page = self.run_groups()
        self.assertEqual(status, 1)
        self.assertIn("| c | 60 | 1.67", page)

    def test_unequal_work_fails(self):
        self.group.same = ("images",)
        self.program("a", line(100))
        self.program("b", line(100, images=7))
        self.assert_fails("images: 8, but 7 of b")

    def test_a_gate_at_the_lower_end_is_held_against_the_worst_round(self):
        self.group.rows[0].lower_end = True
        self.program("a", line(100), line(90), line(100))
        self.program("b", line(100))
        status, _, page = self.run_groups(rounds=3)
        self.assertEqual(status, 1)
        self.assertIn("**no**, by lower end", page)

    def instructions_group(self, ours, theirs):
        group = Group("instructions", "counted", deterministic=True)
        group.commands = {"count a": "{bin}/count_a", "count b": "{bin}/count_b"}
        self.program("count_a", line(1, instructions_per_item=ours))
        self.program("count_b", line(1, instructions_per_item=theirs))
        self.group.base = ["b"]
        self.group.rows[0].counted = ("count a", "count b")
        return group

    def spread_base(self, rounds=2, wide_rounds=2):
        """The base against itself: 0.83 to 1.20 in so many rounds, else 1; then 120."""
        wide = [line(100), line(120)] * wide_rounds
        self.program("b", *wide, *[line(120)] * (2 * (rounds - wide_rounds)), line(120))

    def test_a_gate_inside_the_spread_of_the_base_is_decided_by_instructions(self):
        groups = [self.group, self.instructions_group(100, 110)]
        self.program("a", line(108))
        self.spread_base()
        status, _, page = self.run_groups(groups=groups)
        self.assertEqual(status, 0)
        self.assertIn("0.83–1.20 | 1.10 | ≥ 0.95 | yes, by instructions |", page)

    def test_one_wide_round_of_the_base_is_no_spread(self):
        groups = [self.group, self.instructions_group(100, 110)]
        self.program("a", line(108))
        self.spread_base(rounds=5, wide_rounds=1)
        status, _, page = self.run_groups(groups=groups, rounds=5)
        self.assertEqual(status, 1)
        self.assertIn("0.90 (0.90–0.90) | 1.00–1.00 | 1.10 | ≥ 0.95 | **no** |", page)

    def test_a_gate_outside_of_the_spread_is_decided_by_time(self):
        groups = [self.group, self.instructions_group(100, 110)]
        self.program("a", line(90))
        self.program("b", line(100))
        status, _, page = self.run_groups(groups=groups)
        self.assertEqual(status, 1)
        self.assertIn("1.00–1.00 | 1.10 | ≥ 0.95 | **no** |", page)

    def test_instructions_excuse_no_more_than_a_tenth_of_the_gate(self):
        groups = [self.group, self.instructions_group(100, 110)]
        for speed, status in (103, 0), (102, 1):  # 0.858 and 0.85 of 120, around 0.9 * 0.95
            self.spread_base()
            self.program("a", line(speed))
            self.assertEqual(self.run_groups(groups=groups)[0], status)

    def test_a_time_beyond_the_spread_is_not_excused_by_instructions(self):
        groups = [self.group, self.instructions_group(100, 110)]
        for speed, status in (106, 0), (105, 1):  # 0.883 and 0.875 of 120, around 0.95 * 0.923
            self.program("b", *[line(120), line(130)] * 2, line(120))
            self.program("a", line(speed))
            self.assertEqual(self.run_groups(groups=groups)[0], status)

    def test_a_cost_beyond_the_spread_is_not_excused_by_instructions(self):
        self.group.rows = [lower("a row", "a", ["b"], "rate", 1.05)]
        groups = [self.group, self.instructions_group(110, 100)]  # a ratio of speed: 0.91
        for cost, status in (138, 0), (139, 1):  # 1.15 and 1.158 of 120, around 1.1 * 1.05
            self.spread_base()
            self.program("a", line(cost))
            self.assertEqual(self.run_groups(groups=groups)[0], status)

    def test_a_base_that_fails_against_itself_fails(self):
        self.group.base = ["b"]
        self.program("a", line(100))
        self.program("b", (line(100), 1), line(100))
        self.assert_fails("b: status 1, round 1")

    def test_lines_of_a_base_have_a_spread(self):
        self.group.base = ["b"]
        self.group.rows = [Row("a row", "a:f", ["b:f"], "rate", 2)]
        self.program("a", line(90))
        self.spread_base()
        self.assertIn("| b:f | 120 | 0.75 (0.75–0.75) | 0.83–1.20 | ≥ 2 |", self.run_groups()[2])

    def test_the_instructions_are_counted_for_whoever_needs_them(self):
        groups = [self.group, self.instructions_group(100, 110)]
        self.program("a", line(100))
        self.program("b", line(100))
        _, _, page = self.run_groups("group", groups=groups)
        self.assertIn("### instructions", page)

    def test_what_is_deterministic_is_measured_once(self):
        groups = [self.group, self.instructions_group(100, 110)]
        self.program("count_a", line(1, instructions_per_item=100), ("", 1))
        self.program("a", line(100))
        self.program("b", line(100))
        status, printed, _ = self.run_groups(groups=groups, rounds=2)
        self.assertEqual((status, printed.count("status 1")), (0, 0))

    def test_a_figure_without_a_comparison_is_held_against_the_gate(self):
        self.group.rows = [lower("a row", "a", [], "rate", 99)]
        self.program("a", line(100))
        self.program("b", line(100))
        self.assertEqual(self.run_groups()[0], 1)

    def ask(self, script, *arguments):
        """The line that a script prints, or why it has failed."""
        command = [sys.executable, str(run.ROOT / "tests/bench" / script), *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, text=True)
        return json.loads(done.stdout) if done.returncode == 0 else done.stderr

    def test_processes_side_by_side_are_as_fast_as_the_slowest(self):
        self.program("a", line(1, images=8, wall_s=2, cpu_s=1, layout="hwc_u8"))
        said = self.ask("side_by_side.py", 3, self.build / "tests/bench/a")
        self.assertEqual([said[key] for key in ("images", "wall_s", "cpu_s")], [24, 2, 3])
        self.assertEqual((said["images_per_s"], said["images_per_cpu_s"]), (12, 8))
        self.assertEqual(said["layout"], "hwc_u8")
        self.program("a", ("", 3))
        self.assertIn("status 3", self.ask("side_by_side.py", 2, self.build / "tests/bench/a"))

    def test_of_a_trainer_the_last_epoch_counts(self):
        epochs = [f"epoch  {i}  loss 1.2  test 95.7 %    9{i}.5 s    29 images/s  waited 0.{i} %" for i in (1, 2)]
        self.program("a", "\n".join(epochs))
        said = self.ask("trainer.py", self.build / "tests/bench/a", "RUN")
        figures = ("epoch_s", "images_per_s", "waited_percent")
        self.assertEqual([said[key] for key in figures], [92.5, 29, 0.2])
        self.program("a", ("", 3))
        self.assertIn("status 3", self.ask("trainer.py", self.build / "tests/bench/a", "RUN"))

    def test_the_page_says_what_it_is_of(self):
        mock.patch.stopall()
        self.program("a", line(100))
        self.program("b", line(100))
        page = self.run_groups()[2]
        self.assertTrue(page.startswith("# Benchmarks\n"))
        for fact in ("commit", "CPU", "CPU flags", "compiler", "libjpeg-turbo", "libtiff", "libwebp",
                     "libavif", "zlib", "peers", "load before", "load after"):  # fmt: skip
            self.assertIn(f"\n- {fact}", page)
        self.assertIn("\n- groups: all\n", page)
        self.assertIn("\n- rounds: 2\n", page)

    def test_the_page_says_all_versions_of_the_packages_of_peers(self):
        for peer, package, version in (
            ("torch", "torch", "2.9"), ("torch", "numpy", "2.1"), ("spdl", "numpy", "2.4"),
            ("spdl", "other", "1"), ("dali", "numpy", "2.4"),
        ):  # fmt: skip
            folder = self.build / f"peers/{peer}/lib/python3/site-packages/{package}.dist-info"
            folder.mkdir(parents=True)
            (folder / "METADATA").write_text(f"Name: {package}\nVersion: {version}\n")
        self.assertEqual(machine.peer_versions(self.build), "torch 2.9, numpy 2.1 and 2.4")

    def test_a_page_of_some_groups_says_so(self):
        self.program("a", line(100))
        self.program("b", line(100))
        other = Group("other", "another", dict(self.group.commands), list(self.group.rows))
        page = self.run_groups("other", groups=[self.group, other])[2]
        self.assertIn("\n- groups: without group\n", page)

    def test_a_figure_that_one_machine_passes_and_another_misses_is_shown_with_both(self):
        self.program("a", line(100))
        self.program("b", line(100))
        self.run_groups()
        other = self.build / "other.json"
        os.rename(self.build / "bench.json", other)
        self.program("a", line(80))
        page = self.run_groups("--other", str(other))[2]
        self.assertIn("| ≥ 0.95 | 0.8 (0.8–0.8), **not passed** | 1 (1–1), passed |", page)

    def test_figures_of_another_commit_are_refused(self):
        self.program("a", line(100))
        self.program("b", line(100))
        self.run_groups()
        record = json.loads((self.build / "bench.json").read_text())
        record["machine"]["commit"] = "another"
        other = self.build / "other.json"
        other.write_text(json.dumps(record))
        with self.assertRaisesRegex(SystemExit, "is of another, this is"):
            self.run_groups("--other", str(other))

    def test_programs_that_are_older_than_their_sources_are_refused(self):
        (self.build / "build.ninja").write_text(
            "rule r\n  command = true\nbuild missing: r\nbuild bench-programs: phony missing\n"
        )
        with self.assertRaisesRegex(SystemExit, "bench-programs"):
            self.run_groups()

    def budget_group(self, peak_mib):
        """The group of files alone, with a program that holds so much with 64 items at a time."""
        group = next(group for group in GROUPS if group.name == "budget")
        self.program("budget_bench", "", "")
        script = self.build / "tests/bench/budget_bench"
        script.write_text(
            '#!/bin/sh\ncase "$*" in *"--parallel 64"*) peak=%d;; *) peak=300;; esac\n'
            """echo '{"figure": "files", "item_mib": 200, "peak_rss_mib": '$peak'}'\n""" % peak_mib
        )
        rows = [row for row in group.rows if row.ours.startswith("files:")]
        return Group("budget", "files", {"files": group.commands["files"]}, rows, once={"files"})

    def test_memory_within_the_budget_passes(self):
        status, _, page = self.run_groups(groups=[self.budget_group(328)])
        self.assertEqual(status, 0)
        self.assertIn("| files of 200 MiB, 64 at a time | mib over allowed | 0 (one round) | ≤ 0 | yes |", page)
        self.assertIn("| files of 200 MiB, 1 at a time | mib over allowed | -28 (one round) | ≤ 0 | yes |", page)

    def test_memory_beyond_the_budget_does_not_pass(self):
        status, printed, _ = self.run_groups(groups=[self.budget_group(329)])
        self.assertEqual(status, 1)
        self.assertIn("gates not passed:\n  budget: files of 200 MiB, 64 at a time", printed)
        self.assertNotIn("1 at a time, mib", printed)

    def test_the_formats_of_the_budget_are_made(self):
        group = next(group for group in GROUPS if group.name == "budget")
        self.assertLessEqual({*group.commands}, {"files", *budget.FORMATS})

    def test_the_rows_of_all_groups_name_commands(self):
        run.check_groups(GROUPS)

    def test_all_groups_that_count_instructions_are_deterministic(self):
        deterministic = {group.name for group in GROUPS if group.deterministic}
        self.assertLessEqual({g.counted_by for g in GROUPS if g.is_counted()}, deterministic)

    def media_rows(self):
        """The rows of video and audio that compare, with how many threads each command has."""
        for group in (group for group in GROUPS if group.name in ("video", "audio")):
            threads = {
                name: re.findall("--threads ([0-9]+)", command) or ["1"]
                for name, command in group.commands.items()
            }
            for row in group.rows:
                if row.theirs and "demux" not in row.name:
                    yield row, threads[row.ours], [threads[name] for name in row.theirs]

    def test_video_and_audio_have_as_many_threads_as_what_they_are_compared_with(self):
        for row, ours, theirs in self.media_rows():
            self.assertEqual([ours] * len(theirs), theirs, row.name)

    def test_clips_and_sounds_of_two_threads_are_for_information(self):
        by_two = [row for row, ours, _ in self.media_rows() if ours == ["2"]]
        loaded = [row for row in by_two if row.name.startswith("folder")]
        self.assertEqual({row.gate for row in by_two if row not in loaded}, {None})
        for what in ("even", "contiguous", "flac", "aac"):
            self.assertTrue(any(what in row.name for row in by_two), what)


if __name__ == "__main__":
    unittest.main()
