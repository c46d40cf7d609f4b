# train_libtorch_accuracy_test.py PROGRAM: the example learns the ten shapes that it draws, in a minute
# and a half of CPU time.
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

PROGRAM = sys.argv[1]


class TrainLibtorch(unittest.TestCase):
    def test_it_classifies_more_than_95_percent_of_images_that_it_has_not_seen(self):
        with tempfile.TemporaryDirectory() as directory:
            data, trained = (pathlib.Path(directory, name) for name in ("data", "trained"))
            options = ["--draw", "400", "--epochs", "10", "--threads", "1"]
            done = subprocess.run([PROGRAM, data, trained, *options], capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            correct, images = re.findall(r"correct (\d+) of (\d+)", (trained / "log").read_text())[-1]
        self.assertEqual(int(images), 670)
        self.assertGreater(int(correct) / int(images), 0.95, done.stdout)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
