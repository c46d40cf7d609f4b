# video_loader_test.py PROGRAM: the example as a user meets it, on files that ffmpeg makes.
import json
import pathlib
import struct
import subprocess
import sys
import tarfile
import tempfile
import unittest

from notices import without_notices

PROGRAM = sys.argv[1]
CODECS = {"0.mp4": "libx264", "1.mkv": "libx264", "2.webm": "libvpx", "3.ts": "mpeg2video", "4.avi": "mpeg4"}


def run(*arguments):
    return subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True, timeout=240)


def make_video(path, codec):
    subprocess.run(["ffmpeg", "-nostdin", "-v", "error", "-f", "lavfi", "-i",
                    "testsrc2=size=128x96:rate=25:duration=1", "-pix_fmt", "yuv420p", "-c:v", codec, path],
                   check=True)


def size_of_png(path):
    return struct.unpack(">II", path.read_bytes()[16:24])


class VideoLoader(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        place = tempfile.TemporaryDirectory()
        cls.addClassCleanup(place.cleanup)
        cls.videos = pathlib.Path(place.name)
        for name, codec in CODECS.items():
            make_video(cls.videos / name, codec)

    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.root = pathlib.Path(place.name)

    # The videos, half of them in one class, half in another.
    def directory(self):
        for i, name in enumerate(CODECS):
            folder = self.root / ("run" if i % 2 else "jump")
            folder.mkdir(exist_ok=True)
            (folder / name).write_bytes((self.videos / name).read_bytes())
        return self.root

    def shard(self):
        path = self.root / "train-0.tar"
        with tarfile.open(path, "w") as archive:
            for name in CODECS:
                archive.add(self.videos / name, name)
        return path

    # Half of a file: the headers of its packets lie behind that.
    def damage(self, name="bad.mp4"):
        path = self.root / name
        path.write_bytes((self.videos / "0.mp4").read_bytes()[:4000])
        return path

    def assert_ok(self, result):
        self.assertEqual((result.returncode, without_notices(result.stderr)), (0, ""))

    def assert_fails(self, result, status, *parts):
        self.assertEqual(result.returncode, status, result.stderr)
        self.assertRegex(result.stderr, r"^video_loader: [^\n]+\n$")
        for part in parts:
            self.assertIn(str(part), result.stderr)

    def test_a_gpu_that_is_not_there_is_an_error_with_its_reason(self):
        self.directory()
        result = run(self.root, "--device", 1000)
        self.assert_fails(result, 1)
        self.assertRegex(result.stderr, "^video_loader: use GPU 1000: .+")
        for number in "x", -1, 1024:
            self.assert_fails(run(self.root, "--device", number), 2, "--device takes a number from 0 to 1023")

    def test_each_video_of_a_directory_is_a_clip(self):
        result = run(self.directory(), "--size", 32, "--frames", 4, "--epochs", 2, "--threads", 1)
        self.assert_ok(result)
        for pattern in [r"5 videos, 2 classes$", r"^1 thread, ", r"^read +8 ", r"^decode_clip +1 +10 +10 ",
                        r"^clips +10 in 2 batches, u8 \[8, 4, 32, 32, 3\]$", r"^\w.*\.$",
                        r"^speed +[\d,]+ clips/s, [\d.]+ MB/s read, [\d.]+ MB/s decoded$"]:
            self.assertRegex(result.stdout, "(?m)" + pattern)

    def test_each_video_of_a_shard_is_a_clip(self):
        for order in "--train", "--val":
            result = run(self.shard(), order, "--float", "--size", 32, "--frames", 3, "--epochs", 2)
            self.assert_ok(result)
            self.assertRegex(result.stdout, r"1 shard\n")
            self.assertRegex(result.stdout, r"(?m)^clips +10 in 2 batches, f32 \[8, 3, 3, 32, 32\]$")

    def test_shards_that_are_missing_are_named(self):
        self.assert_fails(run(self.root / "train-{0..3}.tar"), 1, "train-", ".tar", "No such file")

    def test_a_damaged_file_is_named(self):
        self.directory()
        path = self.damage()
        self.assert_fails(run(self.root), 1, path)

    def test_a_damaged_file_is_skipped_on_request(self):
        self.directory()
        path = self.damage()
        log = self.root / "log"
        result = run(self.root, "--skip-bad", "--size", 32, "--failure-log", log)
        self.assert_ok(result)
        self.assertRegex(result.stdout, r"(?m)^skipped +1 video$")
        self.assertRegex(result.stdout, rf"(?m)^namely +{path}$")
        self.assertRegex(result.stdout, r"(?m)^clips +5 in ")
        self.assertEqual(json.loads(log.read_text())["item"], str(path))

    def test_nothing_but_damaged_files_is_a_failure(self):
        path = self.damage()
        result = run(self.root, "--skip-bad")
        self.assert_fails(result, 1, self.root, "no video could be used")
        self.assertIn(str(path), result.stdout)

    def test_an_empty_directory_is_an_error(self):
        (self.root / "notes.txt").write_text("no video")
        self.assert_fails(run(self.root), 1, self.root, "no videos")

    def test_what_makes_no_sense_is_named(self):
        for arguments, named in [
            (["--fps", 0, "."], "from 0.001 to 1000"),
            (["--fps", "nan", "."], "nan"),
            (["--frames", 0, "."], "--frames"),
            (["--fast", "."], "--fast"),
            ([], "directory or shards"),
        ]:
            with self.subTest(arguments):
                self.assert_fails(run(*arguments), 2, named, "--help")

    def test_help_explains_each_option_in_a_line(self):
        result = run("--help")
        self.assert_ok(result)
        for option in ["frames", "fps", "size", "batch", "train", "val", "epochs", "threads", "skip-bad", "trace",
                       "contact-sheet"]:
            self.assertRegex(result.stdout, rf"(?m)^  --{option}\b.*  \S")
        self.assertLessEqual(max(map(len, result.stdout.splitlines())), 100)

    def test_a_contact_sheet_has_a_row_for_each_clip(self):
        path = self.root / "sheet.png"
        for frames, columns in [(4, 4), (16, 10)]:
            result = run(self.directory(), "--size", 32, "--frames", frames, "--contact-sheet", path)
            self.assert_ok(result)
            self.assertRegex(result.stdout, rf"(?m)^contact sheet +{path}, 5 clips$")
            self.assertEqual(size_of_png(path), (columns * 35 + 3, 5 * 35 + 3))

    def test_a_seed_decides_what_training_sees(self):
        def sheet(seed, threads):
            path = self.root / "sheet.png"
            self.assert_ok(run(self.root, "--seed", seed, "--threads", threads, "--size", 32, "--frames", 4, "--fps",
                               8, "--contact-sheet", path))
            return path.read_bytes()

        self.directory()
        self.assertEqual(sheet(1, 1), sheet(1, 4))
        self.assertNotEqual(sheet(1, 1), sheet(2, 1))

    def test_a_trace_follows_every_clip(self):
        path = self.root / "trace"
        self.assert_ok(run(self.directory(), "--size", 32, "--trace", path))
        spans = [event["name"] for event in json.loads(path.read_text()) if event["ph"] == "X"]
        self.assertEqual(len(spans), 5 + 5 + 1)  # read, decoded, and the batch


unittest.main(argv=sys.argv[:1])
