# audio_loader_test.py PROGRAM: the example as a user meets it, on files that ffmpeg makes.
import pathlib
import subprocess
import sys
import tempfile
import unittest

PROGRAM = sys.argv[1]


def run(*arguments):
    return subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True, timeout=240)


def make_audio(path, seconds):
    subprocess.run(["ffmpeg", "-nostdin", "-v", "error", "-f", "lavfi", "-i",
                    f"sine=frequency=440:sample_rate=44100:duration={seconds}", path], check=True)


class AudioLoader(unittest.TestCase):
    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.root = pathlib.Path(place.name)

    def make_files(self):
        for i, suffix in enumerate(["wav", "flac", "mp3", "m4a", "opus", "ogg"]):
            make_audio(self.root / f"{i}.{suffix}", 1 + i % 3)

    def test_every_file_is_in_a_batch(self):
        self.make_files()
        result = run(self.root)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stdout, r"files +6 in \d batches, 1[12]\.\d s of audio")
        self.assertRegex(result.stdout, r"speed +\d+ s of audio in a second")

    def test_files_of_one_bucket_share_a_batch_and_are_padded_to_its_longest(self):
        make_audio(self.root / "a.wav", 4)
        make_audio(self.root / "b.flac", 8)
        for mels in ([], ["log-mel"]):  # 401 and 801 frames
            result = run(self.root, "16000", *mels)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertRegex(result.stdout, r"files +2 in 1 batch, 12\.0 s of audio")
            self.assertRegex(result.stdout, r"padding +25\.0 % of the batches")

    def test_files_of_different_buckets_are_not_padded_to_each_other(self):
        for name, seconds in [("a.wav", 4), ("b.wav", 12), ("c.wav", 4), ("d.wav", 12)]:
            make_audio(self.root / name, seconds)
        result = run(self.root)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stdout, r"files +4 in 2 batches, 32\.0 s of audio")
        self.assertRegex(result.stdout, r"padding +0\.0 % of the batches")

    def test_batches_hold_at_most_sixty_seconds_with_padding(self):
        for i in range(5):
            make_audio(self.root / f"{i}.wav", 20)
        result = run(self.root)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stdout, r"files +5 in 2 batches, 100\.0 s of audio")

    def test_log_mel_spectrograms_have_as_much_audio(self):
        self.make_files()
        result = run(self.root, "16000", "log-mel")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stdout, r"files +6 in \d batches, 1[12]\.\d s of audio")

    def test_a_damaged_file_is_skipped_and_named(self):
        self.make_files()
        (self.root / "bad.wav").write_bytes(b"RIFF....WAVEnothing")
        result = run(self.root)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stdout, r"skipped +1 file\n")
        self.assertIn("bad.wav", result.stdout)

    def test_an_empty_directory_is_an_error(self):
        result = run(self.root)
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stderr, r"^audio_loader: [^\n]+no audio files[^\n]+\n$")

    def test_no_directory_prints_the_usage(self):
        self.assertEqual(run().returncode, 2)


unittest.main(argv=sys.argv[:1])
