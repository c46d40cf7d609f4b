# train_libtorch_test.py PROGRAM: the example trains, is killed again and again and ends with the
# same losses, and says what is wrong.
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import killing

PROGRAM = sys.argv[1]
EPOCHS = 3
STEPS = 12  # of each epoch
TINY = ["--batch", "10", "--save-every", "5", "--threads", "1"]


def run(*arguments):
    return subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True)


class TrainLibtorch(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        directory = tempfile.TemporaryDirectory()
        cls.addClassCleanup(directory.cleanup)
        cls.directory = pathlib.Path(directory.name)
        cls.data = cls.directory / "data"
        cls.trained = cls.directory / "trained"
        cls.first = run(cls.data, cls.trained, *TINY, "--epochs", EPOCHS, "--draw", 12)

    def refused(self, *arguments):
        done = run(*arguments)
        self.assertEqual(done.returncode, 1, done.stderr)
        return done.stderr

    def test_it_draws_images_and_trains_on_them(self):
        self.assertEqual(self.first.returncode, 0, self.first.stderr)
        self.assertEqual(len(list(self.data.glob("train/*/*.png"))), 120)
        self.assertEqual(len(list(self.data.glob("test/*/*.png"))), 30)
        lines = self.first.stdout.splitlines()
        self.assertEqual(len(lines), EPOCHS)
        for number, line in enumerate(lines, 1):
            self.assertRegex(line, rf"^epoch +{number}  loss \d\.\d+  test +[\d.]+ %  .* waited [\d.]+ %$")
        log = (self.trained / "log").read_text()
        self.assertEqual(len(re.findall(r"^epoch \d step \d+ loss \S+$", log, flags=re.M)), EPOCHS * STEPS)
        means = [float(mean) for mean in re.findall(r"mean loss (\S+) correct \d+ of 30$", log, flags=re.M)]
        self.assertEqual(len(means), EPOCHS)
        self.assertLess(means[-1], means[0])

    def test_killed_at_any_time_it_ends_with_the_same_losses(self):
        def start(directory):
            return subprocess.Popen([PROGRAM, self.data, directory, *TINY, "--epochs", str(EPOCHS)],
                                    stdout=subprocess.DEVNULL)
        whole, killed, kills = killing.run_with_kills(start, kills=5, most_lines=STEPS)
        self.assertGreater(kills, 1)
        self.assertEqual(killed, whole)
        self.assertEqual(whole, (self.trained / "log").read_text())

    # As after a kill behind the checkpoint of an epoch's end, which is then saved again.
    def test_lines_after_the_checkpoint_are_replaced(self):
        again = self.directory / "again"
        self.assertEqual(run(self.data, again, *TINY, "--epochs", 1).returncode, 0)
        with (again / "log").open("a") as log:
            log.write("epoch 1 step 1 loss 9\n")
        for epochs in 1, EPOCHS:
            self.assertEqual(run(self.data, again, *TINY, "--epochs", epochs).returncode, 0)
        self.assertEqual((again / "log").read_text(), (self.trained / "log").read_text())

    def test_more_epochs_continue_a_training_that_has_ended(self):
        longer = self.directory / "longer"
        for epochs in 1, EPOCHS:
            self.assertEqual(run(self.data, longer, *TINY, "--epochs", epochs).returncode, 0)
        self.assertEqual((longer / "log").read_text(), (self.trained / "log").read_text())

    def test_a_checkpoint_of_other_options_is_refused(self):
        wrong = [*TINY, "--batch", "12"]
        self.assertIn(f"resume from {self.trained}/checkpoint: it was made with batch 10; this run has "
                      "batch 12", self.refused(self.data, self.trained, *wrong))
        self.assertIn("it was made with seed 0; this run has seed 7",
                      self.refused(self.data, self.trained, *TINY, "--seed", 7))

    def test_a_checkpoint_of_other_images_is_refused(self):
        other = self.directory / "other"
        run(other, self.directory / "unused", *TINY, "--epochs", 1, "--draw", 11)
        log = (self.trained / "log").read_text()
        self.assertIn("110 items", self.refused(other, self.trained, *TINY, "--epochs", EPOCHS))
        self.assertEqual((self.trained / "log").read_text(), log)

    def test_a_checkpoint_that_is_none_is_an_error(self):
        broken = self.directory / "broken"
        broken.mkdir()
        whole = (self.trained / "checkpoint").read_bytes()
        for contents in b"", b"nonsense", whole[:len(whole) // 2], whole + b"0":
            (broken / "checkpoint").write_bytes(contents)
            self.assertIn(f"read {broken}/checkpoint: it is damaged", self.refused(self.data, broken, *TINY))

    # A weight of the network, for instance.
    def test_a_checkpoint_of_which_one_bit_is_another_is_an_error(self):
        flipped = self.directory / "flipped"
        flipped.mkdir()
        whole = bytearray((self.trained / "checkpoint").read_bytes())
        for share in 0.1, 0.3, 0.5, 0.7, 0.9, 1:
            at = int(share * (len(whole) - 1))
            whole[at] ^= 0x40
            (flipped / "checkpoint").write_bytes(whole)
            whole[at] ^= 0x40
            self.assertIn(f"read {flipped}/checkpoint: it is damaged", self.refused(self.data, flipped, *TINY))

    def test_folders_that_cannot_be_trained_on_are_named(self):
        run_directory = self.directory / "nothing"
        self.assertIn("list /nonexistent/train: No such file or directory",
                      self.refused("/nonexistent", run_directory))
        bad = self.directory / "bad"
        bad.mkdir()
        (bad / "train").write_text("a file")
        self.assertIn(f"list {bad}/train: Not a directory", self.refused(bad, run_directory))
        (bad / "train").unlink()
        for name in "train/one", "test/one":
            (bad / name).mkdir(parents=True)
        self.assertIn("fewer than two folders", self.refused(bad, run_directory))
        (bad / "train/two").mkdir()
        self.assertIn("its folders are not called like those in", self.refused(bad, run_directory))
        (bad / "test/two").mkdir()
        self.assertIn(f"list {bad}/train: no file matches", self.refused(bad, run_directory))

    def test_a_file_that_is_no_image_is_named(self):
        self.addCleanup((self.data / "train/star/99.png").unlink)
        (self.data / "train/star/99.png").write_text("no image")
        self.assertIn("train/star/99.png: the first bytes are of no known image format",
                      self.refused(self.data, self.directory / "none", *TINY, "--epochs", 1))

    def test_command_lines_that_make_no_sense_are_refused(self):
        for arguments, why in ([], "DATA and RUN are needed"), \
                (["a", "b", "--epochs"], "--epochs takes a value"), \
                (["a", "b", "--epochs", "x"], "--epochs takes a number from 1 to 1000000, not 'x'"), \
                (["a", "b", "--batch", "1"], "--batch takes a number from 2"), \
                (["a", "b", "--device", "tpu"], "--device takes cpu or cuda, not 'tpu'"), \
                (["a", "b", "--nosuch", "1"], "no option '--nosuch'"):
            done = run(*arguments)
            self.assertEqual(done.returncode, 2)
            self.assertIn(why, done.stderr)
            self.assertIn("usage: train_libtorch DATA RUN", done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
