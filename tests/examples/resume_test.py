# resume_test.py PROGRAM: the example is killed again and again, and ends as if it never had been.
import pathlib
import random
import subprocess
import sys
import tempfile
import unittest

PROGRAM = sys.argv[1]


def start(directory, concurrency=4):
    return subprocess.Popen([PROGRAM, f"{directory}/checkpoint", f"{directory}/log",
                             str(concurrency)])


class Resume(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = pathlib.Path(directory.name)

    def log_of(self, name):
        return (self.directory / name / "log").read_text()

    # Lets the program write so many lines more before it is killed. Returns whether it still ran.
    def kill_after(self, lines, concurrency):
        log = self.directory / "killed" / "log"
        program = start(log.parent, concurrency)
        count = lambda: log.read_text().count("\n") if log.exists() else 0
        before = None
        while program.poll() is None:
            if (self.directory / "killed" / "log").exists() and before is None:
                before = count()
            if before is not None and count() >= before + lines:
                break
        ran = program.poll() is None
        program.kill()
        program.wait()
        return ran

    def test_killed_at_any_time_it_ends_as_if_it_had_not_been(self):
        for name in ("whole", "killed"):
            (self.directory / name).mkdir()
        self.assertEqual(start(self.directory / "whole").wait(), 0)
        seed = random.randrange(2**32)
        print("seed", seed)
        draw = random.Random(seed)
        kills = 0
        while kills < 20 and self.kill_after(draw.randrange(150), draw.randint(1, 8)):
            kills += 1
        self.assertEqual(start(self.directory / "killed").wait(), 0)
        self.assertGreater(kills, 2)
        self.assertEqual(self.log_of("killed"), self.log_of("whole"))

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
