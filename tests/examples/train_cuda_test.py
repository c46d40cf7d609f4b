# train_cuda_test.py PROGRAM: the example learns, on the CPU if there is no GPU.
import re
import subprocess
import sys
import unittest

from notices import without_notices

PROGRAM = sys.argv[1]


def run(*arguments):
    return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True)


class TrainCuda(unittest.TestCase):
    def test_it_learns_on_the_cpu(self):
        done = run("--device", "cpu", "--epochs", "2")
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = done.stdout.splitlines()
        self.assertRegex(lines[0], "^training on the CPU")
        accuracies = [float(found) for found in re.findall(r"accuracy ([0-9.]+) %", done.stdout)]
        self.assertEqual(len(accuracies), 2)
        self.assertGreater(accuracies[1], 99)

    def test_every_run_has_the_same_losses(self):
        losses = [re.findall(r"loss ([0-9.]+)", run("--device", "cpu", "--epochs", "1").stdout)
                  for _ in range(2)]
        self.assertEqual(losses[0], losses[1])
        self.assertEqual(len(losses[0]), 1)

    # By work that changes no weight.
    def test_steps_are_lengthened_and_train_the_same(self):
        usual = run("--device", "cpu", "--epochs", "1").stdout
        done = run("--device", "cpu", "--epochs", "1", "--draws", "5", "--step-ratio", "8.5")
        self.assertEqual((done.returncode, without_notices(done.stderr)), (0, ""))
        self.assertRegex(done.stdout, r"\nthe pipeline makes a batch in \d+ us; a step takes \d+ us, "
                         r"[\d.]+ times as long\n")
        self.assertRegex(done.stdout, r"\nepoch 0: loss [\d.]+, .* trainer idle [\d.]+ %\n")
        self.assertEqual(*(re.findall(r"loss [0-9.]+", text) for text in [usual, done.stdout]))

    def test_a_gpu_that_is_not_there_is_an_error(self):
        done = run("--device", "99")
        self.assertEqual(done.returncode, 1)
        self.assertIn("use GPU 99: ", done.stderr)

    def test_options_that_cannot_work_are_named(self):
        for arguments, why in [(["--batch", "257"], "--batch must be from 1 to 256"),
                               (["--batch", "x"], "--batch x is not a number"),
                               (["--draws", "0"], "--draws must be at least 1"),
                               (["--step-ratio", "0"], "--step-ratio 0 is not a number above 0"),
                               (["--step-ratio", "1x"], "--step-ratio 1x is not a number above 0"),
                               (["--speed", "9"], "unknown option --speed"),
                               (["--epochs"], "the last option has no value")]:
            done = run(*arguments)
            self.assertEqual(done.returncode, 1)
            self.assertIn(why, done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
