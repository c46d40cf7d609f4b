# reencode_test.py PROGRAM: a video is mirrored, its sound stays as it is.
import pathlib
import subprocess
import sys
import tempfile
import unittest

from notices import without_notices

PROGRAM = sys.argv[1]
SIZE = 96 * 64


def ffmpeg(*arguments):
    return subprocess.run(["ffmpeg", "-nostdin", "-v", "error", "-y", *map(str, arguments)],
                          capture_output=True, check=True).stdout


def reencode(source, target):
    return subprocess.run([PROGRAM, source, target], capture_output=True, text=True)


def turn(source, degrees, target):
    """States that a video is to be turned. From FFmpeg 6 on, an option of the input says so."""
    try:
        ffmpeg("-display_rotation", degrees, "-i", source, "-c", "copy", target)
    except subprocess.CalledProcessError:
        ffmpeg("-i", source, "-c", "copy", "-metadata:s:v:0", f"rotate={degrees}", target)


def grey(path, how="null"):
    return ffmpeg("-i", path, "-vf", how, "-fps_mode", "passthrough", "-pix_fmt", "gray",
                  "-f", "rawvideo", "-")


def probe(path, what):
    return subprocess.run(["ffprobe", "-v", "error", "-of", "csv", "-show_entries", what, path],
                          capture_output=True, text=True, check=True).stdout


class Reencode(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.path = pathlib.Path(self.directory.name)
        self.source = self.path / "source.mp4"
        ffmpeg("-f", "lavfi", "-i", "testsrc2=size=96x64:rate=25:duration=2",
               "-f", "lavfi", "-i", "sine=440:duration=2", "-c:v", "libx264", "-bf", "2",
               "-vf", "setsar=4/3", "-pix_fmt", "yuv420p", "-c:a", "aac", "-metadata", "title=two seconds", self.source)

    def tearDown(self):
        self.directory.cleanup()

    def test_pictures_are_mirrored(self):
        for name in ["target.mp4", "target.mkv"]:
            target = self.path / name
            done = reencode(self.source, target)
            self.assertEqual((done.returncode, done.stdout), (0, "50 frames\n"))
            mirrored, expected = grey(target), grey(self.source, "hflip")
            self.assertEqual(len(mirrored), 50 * SIZE)
            errors = sum(abs(a - b) for a, b in zip(mirrored, expected))
            self.assertLess(errors / len(mirrored), 4)

    def test_pictures_are_mirrored_as_they_are_shown(self):
        for degrees in [90, 180, 270]:
            turned, target = self.path / "turned.mp4", self.path / "target.mp4"
            turn(self.source, degrees, turned)
            self.assertNotEqual(grey(turned), grey(self.source))
            self.assertEqual(reencode(turned, target).returncode, 0)
            mirrored, expected = grey(target), grey(turned, "hflip")
            self.assertEqual(len(mirrored), len(expected))
            errors = sum(abs(a - b) for a, b in zip(mirrored, expected))
            self.assertLess(errors / len(mirrored), 4)

    def test_frames_without_times_are_refused(self):
        source = self.path / "source.avi"
        ffmpeg("-i", self.source, "-c", "copy", "-an", source)
        done = reencode(source, self.path / "target.mp4")
        self.assertEqual(done.returncode, 1)
        self.assertIn("source.avi", done.stderr)
        self.assertIn("does not state when its frames are shown", done.stderr)

    def test_sound_times_and_proportions_stay(self):
        target = self.path / "target.mp4"
        reencode(self.source, target)
        sound = [ffmpeg("-i", path, "-map", "a", "-c", "copy", "-f", "md5", "-")
                 for path in (self.source, target)]
        self.assertEqual(sound[0], sound[1])
        for what in ["packet=stream_index,pts_time", "format_tags=title",
                     "stream=sample_aspect_ratio"]:
            both = [sorted(probe(path, what).splitlines()) for path in (self.source, target)]
            self.assertEqual(both[0], both[1])

    def test_colours_stay(self):
        for format, matrix, primaries, transfer in [
                ("yuv420p", "bt709", "bt709", "bt709"),
                ("yuv444p10le", "bt2020nc", "bt2020", "smpte2084")]:
            ffmpeg("-f", "lavfi", "-i", "testsrc2=size=96x64:rate=25:duration=0.2", "-c:v", "libx264",
                   "-pix_fmt", format, "-colorspace", matrix, "-color_primaries", primaries,
                   "-color_trc", transfer, self.source)
            target = self.path / "target.mp4"
            done = reencode(self.source, target)
            self.assertEqual((done.returncode, without_notices(done.stderr)), (0, ""))
            self.assertEqual(probe(target, "stream=color_space,color_primaries,color_transfer"),
                             f"stream,{matrix},{transfer},{primaries}\n")

    def test_rgb_becomes_yuv(self):
        source = self.path / "rgb.mov"
        ffmpeg("-f", "lavfi", "-i", "testsrc2=size=96x64:rate=25:duration=0.2", "-c:v", "libx264rgb",
               source)
        target = self.path / "target.mp4"
        done = reencode(source, target)
        self.assertEqual((done.returncode, without_notices(done.stderr)), (0, ""))
        self.assertIn("yuv420p", probe(target, "stream=pix_fmt"))

    def test_what_cannot_be_done_is_said(self):
        done = reencode(self.path / "nosuch.mp4", self.path / "target.mp4")
        self.assertEqual(done.returncode, 1)
        self.assertIn("nosuch.mp4", done.stderr)
        self.assertEqual(reencode(self.source, "/dev/full").returncode, 1)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
