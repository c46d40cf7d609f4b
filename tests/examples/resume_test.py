# resume_test.py PROGRAM: the example is killed again and again, and ends as if it never had been.
import pathlib
import random
import subprocess
import sys
import tempfile
import unittest

import killing

PROGRAM = sys.argv[1]


def start(directory, concurrency=4):
    return subprocess.Popen([PROGRAM, f"{directory}/checkpoint", f"{directory}/log",
                             str(concurrency)])


class Resume(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = pathlib.Path(directory.name)

    def test_killed_at_any_time_it_ends_as_if_it_had_not_been(self):
        draw = random.Random(0)
        whole, killed, kills = killing.run_with_kills(
            lambda directory: start(directory, draw.randint(1, 8)), kills=20, most_lines=150)
        self.assertGreater(kills, 2)
        self.assertEqual(killed, whole)

    def test_a_checkpoint_that_is_none_is_an_error(self):
        (self.directory / "checkpoint").write_text("12\nnonsense\n")
        program = subprocess.run([PROGRAM, f"{self.directory}/checkpoint", f"{self.directory}/log"],
                                 capture_output=True, text=True)
        self.assertEqual(program.returncode, 1)
        self.assertIn("read a state: expected {", program.stderr)

    def test_without_arguments_it_says_how_to_use_it(self):
        program = subprocess.run([PROGRAM], capture_output=True, text=True)
        self.assertEqual(program.returncode, 2)
        self.assertIn("usage: resume", program.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
