# small_test.py DIRECTORY: the small examples do what they say.
import os
import pathlib
import subprocess
import sys
import unittest

DIRECTORY = pathlib.Path(sys.argv[1])


def run(program):
    return subprocess.run([DIRECTORY / program], capture_output=True, text=True, check=True)


def lines_of(program):
    return run(program).stdout.splitlines()


def profiled(program, items):
    environment = os.environ | {"LADE_PROFILE": items}
    return subprocess.run([DIRECTORY / program], capture_output=True, text=True, env=environment)


class Small(unittest.TestCase):
    def test_custom_stage_joins_neighbours(self):
        self.assertEqual(lines_of("custom_stage"), ["to be, or not to be", "that is the question"])

    def test_mix_has_every_item_once_an_epoch(self):
        lines = lines_of("mix")
        first, second = lines[1:41], lines[42:]
        everything = [f"  question {i}" for i in range(30)] + [f"  story {i}" for i in range(10)]
        self.assertEqual(sorted(first), sorted(everything))
        self.assertEqual(sorted(second), sorted(everything))
        self.assertNotEqual(first, second)
        self.assertEqual(lines, lines_of("mix"))

    def test_failures_are_retried_left_out_and_bounded(self):
        lines = lines_of("failures")
        self.assertEqual(lines[0], "17 pages, without")
        self.assertEqual(len([line for line in lines if "broken" in line and "no page" in line]), 4)
        self.assertEqual(lines[-1], "parse (broken 14): no page (more failures than the budget allows)")

    def test_profile_names_the_slowest_stage_and_tells_of_a_run(self):
        done = run("profile")
        lines = done.stdout.splitlines()
        stages = [line.split()[0] for line in lines[1:-1] if not line.startswith(" ")]
        self.assertEqual(stages, ["source", "fetch", "parse", "batch"])
        self.assertTrue(lines[-1].startswith("parse is the slowest"), lines[-1])
        reports = done.stderr.splitlines()
        for line in reports:
            self.assertRegex(line, r"^lade: \d+:\d\d  \d+ items  .* per s  ready \d+ %")
        self.assertIn("  10 items  ", reports[-1])

    def test_the_environment_has_the_first_run_profiled(self):
        done = profiled("mix", "10")
        self.assertEqual(done.stdout.splitlines(), lines_of("mix"))
        tables = [line for line in done.stderr.splitlines() if line.startswith("stage")]
        self.assertEqual(len(tables), 1)
        self.assertEqual(profiled("mix", "").stderr, "")

    def test_what_is_no_number_of_items_is_not_profiled(self):
        must = "LADE_PROFILE must be a number of items from 1 to 1073741824"
        for wrong in ["0", "x", "ten", "-1", "10 items", "1073741825", "99999999999999999999"]:
            done = profiled("mix", wrong)
            self.assertEqual(done.stdout.splitlines(), lines_of("mix"))
            self.assertEqual(done.stderr, f'lade: no profile: {must}, not "{wrong}"\n')


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
