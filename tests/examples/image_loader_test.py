# image_loader_test.py PROGRAM PHOTOS: the example as a user meets it.
import json
import os
import pathlib
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from notices import without_notices

try:
    from PIL import Image
except ImportError:
    Image = None

PROGRAM = sys.argv[1]
PHOTOS = pathlib.Path(sys.argv[2])
TIMEOUT = 240  # sanitizers and valgrind are slow


def run(*arguments, under=(), **how):
    return subprocess.run([*under, PROGRAM, *map(str, arguments)], capture_output=True, text=True, timeout=TIMEOUT, **how)


# What the program writes to a terminal, and its exit status. `act(process, seen)` is called for
# all that has been seen so far, whenever there is more.
def run_on_terminal(*arguments, act=lambda process, seen: None, term="xterm"):
    try:
        master, slave = pty.openpty()
    except OSError as error:
        raise unittest.SkipTest(f"no terminal to be had: {error}") from error
    environment = {**os.environ, "TERM": term, "LC_ALL": "C.UTF-8"}
    process = subprocess.Popen([PROGRAM, *map(str, arguments)], stdin=slave, stdout=slave, stderr=slave,
                               env=environment, start_new_session=True)
    os.close(slave)
    seen = b""
    deadline = time.monotonic() + TIMEOUT
    while time.monotonic() < deadline:
        if not select.select([master], [], [], 1)[0]:
            continue
        try:
            part = os.read(master, 65536)
        except OSError:  # the program has ended
            break
        if not part:
            break
        seen += part
        act(process, seen)
    os.close(master)
    return seen.decode(), process.wait(timeout=TIMEOUT)


class World(unittest.TestCase):
    def setUp(self):
        self.place = tempfile.TemporaryDirectory()
        self.addCleanup(self.place.cleanup)
        self.root = pathlib.Path(self.place.name)
        self.photos = sorted(PHOTOS.glob("*.jpg"))

    # Copies of some photos, half of them in one class, half in another.
    def images(self, count):
        for i, photo in enumerate(self.photos[:count]):
            folder = self.root / ("cat" if i % 2 else "dog")
            folder.mkdir(exist_ok=True)
            shutil.copy(photo, folder)
        return self.root

    def assert_fails(self, result, status, *parts):
        self.assertEqual(result.returncode, status, result.stderr)
        self.assertRegex(result.stderr, r"^image_loader: [^\n]+\n$")
        for part in parts:
            self.assertIn(str(part), result.stderr)


class Options(World):
    def test_help_explains_each_option_in_a_line(self):
        result = run("--help")
        self.assertEqual((result.returncode, without_notices(result.stderr)), (0, ""))
        for option in ["batch", "size", "epochs", "threads", "train", "val", "fast", "float", "read-ahead",
                       "seed", "skip-bad", "failure-log", "slowest", "contact-sheet", "trace", "reactor", "help"]:
            self.assertRegex(result.stdout, rf"(?m)^  --{option}\b.*  \S")
        self.assertIn("(256)", result.stdout)
        self.assertLessEqual(max(map(len, result.stdout.splitlines())), 100)

    def test_help_has_a_short_name(self):
        self.assertEqual(run("-h").stdout, run("--help").stdout)

    def test_what_makes_no_sense_is_named(self):
        for arguments, named in [
            (["--bacth", 2, "."], "--bacth"),
            (["--batch", "many", "."], "many"),
            (["--batch", 0, "."], "--batch"),
            (["--batch", -1, "."], "-1"),
            (["--batch=12x", "."], "12x"),
            (["--size", 99999999999, "."], "99999999999"),
            ([".", "--batch"], "--batch"),
            ([".", "--fast=yes"], "--fast"),
            (["--reactor", "epoll", "."], "epoll"),
            (["one", "two"], "two"),
            ([], "directory"),
        ]:
            with self.subTest(arguments):
                self.assert_fails(run(*arguments), 2, named, "--help")

    def test_a_value_may_follow_an_equals_sign(self):
        result = run("--batch=2", "--size=32", self.images(3))
        self.assertIn("2 batches", result.stdout)
        self.assertIn("[2, 32, 32, 3]", result.stdout)


class Failures(World):
    def test_a_missing_directory_is_named(self):
        self.assert_fails(run(self.root / "nowhere"), 1, self.root / "nowhere", "No such file")

    def test_an_empty_directory_is_named(self):
        (self.root / "notes.txt").write_text("no image")
        self.assert_fails(run(self.root), 1, self.root, "no images")

    def test_a_gpu_that_is_not_there_is_an_error_with_its_reason(self):
        result = run(self.images(3), "--device", 1000)
        self.assert_fails(result, 1)
        self.assertRegex(result.stderr, "^image_loader: use GPU 1000: .+")

    def test_a_truncated_image_is_named(self):
        path = self.images(3) / "dog" / "truncated.jpg"
        path.write_bytes(self.photos[0].read_bytes()[:50_000])
        self.assert_fails(run(self.root, "--val"), 1, path)

    def test_a_file_that_is_no_image_is_named(self):
        path = self.images(3) / "dog" / "text.png"
        path.write_text("not an image")
        self.assert_fails(run(self.root), 1, path)

    def test_a_file_that_is_gone_is_named(self):
        path = self.images(3) / "dog" / "gone.jpg"
        path.symlink_to("nowhere")
        self.assert_fails(run(self.root), 1, path, "No such file")

    def test_an_unreadable_file_is_named(self):
        path = self.images(3) / "dog" / "secret.jpg"
        path.write_bytes(b"")
        path.chmod(0)
        bounded = ()
        if os.geteuid() == 0:  # who may read everything
            bounded = ("setpriv", "--bounding-set=-dac_override,-dac_read_search")
        self.assert_fails(run(self.root, under=bounded), 1, path, "Permission denied")

    def test_a_trace_follows_every_image(self):
        path = self.root / "trace"
        self.assertEqual(run(self.images(3), "--trace", path).returncode, 0)
        events = json.loads(path.read_text())
        spans = [e["name"] for e in events if e["ph"] == "X"]
        self.assertEqual(len(spans), 3 + 3 + 1)  # read, decoded, and the batch
        self.assertEqual([sum(e["ph"] == phase for e in events) for phase in "stf"], [3, 3, 3])
        self.assert_fails(run(self.images(3), "--trace", self.root / "absent/trace"), 1, "absent/trace")

    def test_a_contact_sheet_that_cannot_be_written_is_named_before_the_work(self):
        path = self.root / "nowhere" / "sheet.png"
        result = run(self.images(3), "--contact-sheet", path)
        self.assert_fails(result, 1, path)
        self.assertEqual(result.stdout, "")


    def test_a_report_that_cannot_be_written_is_an_exit_status(self):
        for arguments in [self.images(3)], ["--help"]:
            with open("/dev/full", "w") as full:
                result = subprocess.run([PROGRAM, *arguments], stdout=full, stderr=subprocess.PIPE, text=True,
                                        timeout=TIMEOUT)
            self.assertEqual(result.returncode, 1)
            self.assertRegex(result.stderr, r"^image_loader: [^\n]*No space left on device\n$")
        self.assert_fails(run(self.root, "--trace", "/dev/full"), 1, "/dev/full", "No space left")

    def test_a_contact_sheet_that_cannot_be_written_comes_after_the_summary(self):
        (self.images(3) / "dog" / "bad.png").write_text("not an image")
        result = run(self.root, "--skip-bad", "--contact-sheet", "/dev/full")
        self.assert_fails(result, 1, "/dev/full", "No space left")
        self.assertRegex(result.stdout, r"(?m)^skipped +1 image")

    def test_names_cannot_write_to_the_terminal(self):
        path = self.images(3) / "dog" / "\x1b[2J\n.png"
        path.write_text("not an image")
        self.assert_fails(run(self.root), 1, r"\x1b[2J\n.png")
        result = run(self.root, "--skip-bad", "--slowest")
        self.assertEqual((result.returncode, without_notices(result.stderr)), (0, ""))
        self.assertIn(r"\x1b[2J\n.png", result.stdout)
        self.assertNotIn("\x1b", result.stdout)


class SkipBad(World):
    def test_bad_files_are_counted_and_named(self):
        bad = self.images(4) / "cat" / "text.png", self.root / "dog" / "gone.jpg"
        bad[0].write_text("not an image")
        bad[1].symlink_to("nowhere")
        result = run(self.root, "--skip-bad", "--epochs", 2, "--size", 32)
        self.assertEqual((result.returncode, without_notices(result.stderr)), (0, ""))
        self.assertRegex(result.stdout, r"(?m)^skipped +2 images, 4 times$")
        self.assertRegex(result.stdout, r"(?m)^ +1  No such file or directory$")
        self.assertRegex(result.stdout, r"(?m)^images +8 in ")
        for path in bad:
            self.assertEqual(result.stdout.count(str(path)), 1)

    def test_the_shape_is_that_of_a_full_batch(self):
        (self.images(7) / "0.png").write_text("not an image")  # the first batch lacks it
        result = run(self.root, "--skip-bad", "--batch", 3, "--size", 32, "--threads", 1)
        self.assertEqual((result.returncode, without_notices(result.stderr)), (0, ""))
        self.assertRegex(result.stdout, r"(?m)^images +7 in 3 batches, u8 \[3, 32, 32, 3\]$")

    def test_of_many_bad_files_the_last_ten_are_named_and_all_are_in_the_log(self):
        for i in range(1100):  # more than a run remembers
            (self.root / f"{i:04}.jpg").symlink_to("nowhere")
        log = self.root / "log"
        result = run(self.images(3), "--skip-bad", "--read-ahead", 1, "--failure-log", log)
        self.assertEqual((result.returncode, without_notices(result.stderr)), (0, ""))
        self.assertRegex(result.stdout, r"(?m)^skipped +1,100 images$")
        self.assertRegex(result.stdout, r"(?m)^ +1,100  No such file or directory$")
        named = re.findall(r"\d{4}\.jpg", result.stdout[result.stdout.index("the last"):])
        self.assertEqual(len(named), 10)
        self.assertRegex(result.stdout, rf"(?m)^all of them +{re.escape(str(log))}$")
        records = [json.loads(line) for line in log.read_text().splitlines()]
        self.assertEqual(len({record["item"] for record in records}), 1100)
        self.assertIn("--failure-log", run(self.root, "--skip-bad").stdout)

    # Makes a directory that cannot be read; returns what the program is to run under for that.
    def close(self, directory):
        directory.mkdir()
        directory.chmod(0)
        self.addCleanup(directory.chmod, 0o700)
        if os.geteuid() != 0:
            return ()
        return ("setpriv", "--bounding-set=-dac_override,-dac_read_search")  # root may read everything

    def test_directories_that_cannot_be_read_are_skipped_and_counted(self):
        closed = self.images(4) / "closed"
        bounded = self.close(closed)
        self.assert_fails(run(self.root, under=bounded), 1, closed, "Permission denied")
        log = self.root / "log"
        result = run(self.root, "--skip-bad", "--failure-log", log, under=bounded)
        self.assertEqual((result.returncode, without_notices(result.stderr)), (0, ""))
        self.assertRegex(result.stdout, r"(?m)^skipped +0 images, and 1 directory$")
        self.assertRegex(result.stdout, r"(?m)^ +1  Permission denied$")
        self.assertIn("closed", json.loads(log.read_text())["item"])

    def test_no_images_but_directories_that_cannot_be_read_are_named(self):
        bounded = self.close(self.root / "closed")
        result = run(self.root, "--skip-bad", under=bounded)
        self.assert_fails(result, 1, "no images in it or below it; could not list", "Permission denied")

    def test_paths_that_are_too_long_are_skipped_and_counted(self):
        self.images(4)
        home = os.open(self.root, os.O_RDONLY)
        for _ in range(18):  # beyond 4,096 characters
            os.mkdir("d" * 250, dir_fd=home)
            inside = os.open("d" * 250, os.O_RDONLY, dir_fd=home)
            os.close(home)
            home = inside
        os.close(os.open("x.jpg", os.O_CREAT | os.O_WRONLY, dir_fd=home))
        os.close(home)
        result = run(self.root, "--skip-bad")
        self.assertEqual((result.returncode, without_notices(result.stderr)), (0, ""))
        self.assertRegex(result.stdout, r"(?m)^images +4 in ")
        self.assertRegex(result.stdout, r"(?m)^ +1  File name too long$")
        shutil.rmtree(self.root / ("d" * 250))

    def test_nothing_but_bad_files_is_a_failure(self):
        (self.root / "text.png").write_text("not an image")
        result = run(self.root, "--skip-bad")
        self.assert_fails(result, 1, self.root)
        self.assertIn("text.png", result.stdout)


def seconds(text):
    """A time as it is printed, and by how much it may have been rounded."""
    number, unit = text.split()
    factor = 0.001 if unit == "ms" else 1
    return float(number) * factor, 0.51 * factor * 10 ** -len(number.partition(".")[2])


class Output(World):
    def test_a_directory_is_a_class(self):
        self.assertIn("4 images, 2 classes\n", run(self.images(4), "--size", 32).stdout)
        shutil.copy(self.photos[0], self.root)  # beside the classes
        self.assertIn("5 images, 2 classes\n", run(self.root, "--size", 32).stdout)

    def test_a_report_has_stages_a_verdict_and_figures(self):
        text = run(self.images(4), "--size", 32, "--threads", 1).stdout
        for pattern in [r"^1 thread, ", r"^read +64 ", r"^decode_image +1 +4 +4 ", r"^\w.*\.$",
                        r"^images +4 in 1 batch, u8 \[4, 32, 32, 3\]$", r"^time .* first batch after [\d.]+ m?s$",
                        r"^speed +[\d,]+ images/s, [\d.]+ MB/s read, [\d.]+ MB/s decoded$",
                        r"^CPU +[\d.]+ s per 1,000 images$"]:
            self.assertRegex(text, "(?m)" + pattern)

    def test_the_figures_fit_each_other(self):
        text = run(self.images(1), "--size", 512).stdout  # of a batch for 256
        times = re.search(r"(?m)^time +([\d.]+ m?s), the first batch after ([\d.]+ m?s)$", text).groups()
        (total, within), (first, _) = map(seconds, times)
        self.assertLessEqual(first, total)
        rates = re.search(r"(?m)^speed .*, ([\d.]+) MB/s read, ([\d.]+) MB/s decoded$", text).groups()
        sizes = sum(path.stat().st_size for path in self.root.glob("*/*")), 512 * 512 * 3
        for rate, size in zip(rates, sizes):
            rounded = 0.06e6 * total + 1e6 * float(rate) * within
            self.assertLessEqual(abs(float(rate) * 1e6 * total - size), rounded)

    def test_the_slowest_images_are_named_on_request(self):
        text = run(self.images(4), "--slowest").stdout
        self.assertRegex(text, r"(?m)^slowest items of decode_image\n  [\d.]+ m?s  \S+\.jpg \(item \d\)\n")
        self.assertNotIn("slowest", run(self.root).stdout)

    def test_the_reactor_can_be_chosen(self):
        self.assertIn("fallback", run(self.images(2), "--reactor", "fallback").stdout)

    def test_without_a_terminal_there_are_no_control_characters(self):
        result = run(self.images(4), "--epochs", 20)
        self.assertEqual((result.returncode, without_notices(result.stderr)), (0, ""))
        self.assertNotRegex(result.stdout, r"[^\n -~]")

    def test_a_terminal_shows_progress_and_is_left_clean(self):
        text, status = run_on_terminal(self.images(6), "--epochs", 40)
        self.assertEqual(status, 0)
        self.assertRegex(text, r"\repoch \d+ of 40  .*━.*\d+ %")
        self.assertIn("images/s", text)
        begin = text.rindex("\x1b[K")  # the last thing the bar does
        self.assertIn("decode_image", text[begin:])
        self.assertNotIn("━", text[begin:])

    def test_a_dumb_terminal_shows_no_progress(self):
        text, _ = run_on_terminal(self.images(4), "--epochs", 20, term="dumb")
        self.assertNotIn("\x1b", text)

    def test_a_failure_on_a_terminal_takes_the_bar_away(self):
        (self.images(6) / "dog" / "text.png").write_text("not an image")
        text, status = run_on_terminal(self.root, "--epochs", 40, "--val")
        self.assertEqual(status, 1)
        self.assertRegex(text, r"(\x1b\[K|\n)image_loader: [^\r\n]*text.png[^\r\n]*\r\n$")


class Interrupt(World):
    def test_it_tells_what_was_done_so_far(self):
        def interrupt(process, seen):
            if re.search(rb"epoch ([2-9]|\d\d+) of", seen) and not self.sent:
                self.sent = True
                process.send_signal(signal.SIGINT)

        self.sent = False
        text, status = run_on_terminal(self.images(6), "--epochs", 100_000, "--batch", 4, act=interrupt)
        self.assertEqual(status, -signal.SIGINT)
        self.assertRegex(text, r"images +[\d,]+ in [\d,]+ batch")
        counts = [re.search(pattern, text)[1]
                  for pattern in [r"interrupted after ([\d,]+) images?\r\n", r"images +([\d,]+) in"]]
        self.assertEqual(*counts)


@unittest.skipUnless(Image, "needs Pillow")
class ContactSheet(World):
    def sheet(self, *arguments):
        path = self.root / "sheet.png"
        result = run(PHOTOS, "--contact-sheet", path, *arguments)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn(str(path), result.stdout)
        with Image.open(path) as image:
            image.load()
            self.assertEqual((image.format, image.mode), ("PNG", "RGB"))
            return image

    def test_shows_the_batch_with_gaps(self):
        image = self.sheet("--size", 64)  # the 20 photos, five in a row
        self.assertEqual(image.size, (5 * (64 + 3) + 3, 4 * (64 + 3) + 3))
        gaps = image.crop((0, 67, image.width, 70))
        self.assertEqual(gaps.getcolors(), [(image.width * 3, (255, 255, 255))])
        cells = [image.crop((x * 67 + 3, y * 67 + 3, x * 67 + 67, y * 67 + 67)).tobytes()
                 for x in range(5) for y in range(4)]
        self.assertEqual(len(set(cells)), 20)

    def test_shows_no_more_than_80_images(self):
        image = self.sheet("--size", 16, "--epochs", 5, "--batch", 100)
        self.assertEqual(image.size, (10 * 19 + 3, 8 * 19 + 3))

    def test_floats_look_as_bytes_do(self):
        for mode in ["--val", "--train"]:
            one, other = self.sheet(mode, "--size", 64), self.sheet(mode, "--size", 64, "--float")
            worst = max(abs(a - b) for a, b in zip(one.tobytes(), other.tobytes()))
            self.assertLessEqual(worst, 1)

    def test_a_seed_decides_what_training_sees(self):
        one, same, other = (self.sheet("--size", 32, "--seed", seed, "--threads", threads).tobytes()
                            for seed, threads in [(1, 1), (1, 4), (2, 1)])
        self.assertEqual(one, same)
        self.assertNotEqual(one, other)


if __name__ == "__main__":
    result = unittest.main(argv=sys.argv[:1], exit=False).result
    sys.exit(1 if not result.wasSuccessful() else 77 if result.skipped else 0)  # 77: see Meson
