# make_shards_test.py PROGRAM: the archives that make_shards writes, read by Python's tarfile.
import os
import pathlib
import random
import subprocess
import sys
import tarfile
import tempfile
import unittest

from notices import without_notices

PROGRAM = sys.argv[1]


def pack(folder, prefix, size):
    return subprocess.run([PROGRAM, folder, prefix, str(size)], capture_output=True, text=True)


def members_of(path):
    with tarfile.open(path) as archive:
        return [(m.name, archive.extractfile(m).read()) for m in archive.getmembers()]


class MakeShards(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.root = pathlib.Path(self.directory.name)
        self.addCleanup(self.directory.cleanup)

    def write_files(self):
        draw = random.Random(7)
        files = {}
        for i in range(200):
            for extension in ["jpg", "seg.png", "cls"]:
                name = f"class.{i % 3}/{i:03}-{'n' * (i % 120)}.{extension}"
                files[name] = draw.randbytes(draw.randrange(3000))
        for name, content in files.items():
            path = self.root / "in" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        return files

    def test_archives_hold_all_files_with_samples_together_and_are_reproducible(self):
        files = self.write_files()
        for prefix in ["a", "b"]:
            made = pack(self.root / "in", self.root / prefix, 100_000)
            self.assertEqual(made.returncode, 0, made.stderr)
        first = sorted(self.root.glob("a-*.tar"))
        second = sorted(self.root.glob("b-*.tar"))
        self.assertGreater(len(first), 5)
        self.assertEqual([p.read_bytes() for p in first], [p.read_bytes() for p in second])
        packed = {}
        shard_of = {}
        for path in first:
            for name, content in members_of(path):
                packed[name] = content
                directory, base = name.split("/")
                key = directory + "/" + base.split(".")[0]
                self.assertEqual(shard_of.setdefault(key, path), path)
            self.assertLess(path.stat().st_size, 120_000)
        self.assertEqual(packed, files)
        self.assertEqual([p for p in self.root.iterdir() if "tmp" in p.name], [])

    def put(self, *names):
        for name in names:
            path = self.root / "in" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(name.encode())

    def packed(self):
        names = []
        for path in sorted(self.root.glob("a-*.tar")):
            for name, content in members_of(path):
                self.assertEqual(content, name.encode())
                names.append(name)
        return names

    def test_the_key_of_a_sample_ends_at_the_first_dot_and_tells_cases_apart(self):
        self.put("a.jpg", "A.JPG", "a.1.jpg", "a.JSON", "b/a.jpg", "a b.jpg")
        made = pack(self.root / "in", self.root / "a", 1)
        self.assertEqual(made.returncode, 0, made.stderr)
        self.assertEqual(
            self.packed(), ["A.JPG", "a.1.jpg", "a.JSON", "a.jpg", "a b.jpg", "b/a.jpg"])
        self.assertEqual(len(list(self.root.glob("a-*.tar"))), 4)
        self.assertIn("4 samples of 6 files", made.stdout)
        self.assertEqual(without_notices(made.stderr), "")

    def test_what_no_reader_would_deliver_is_left_out_by_name(self):
        self.put("a.jpg", "LICENSE", ".hidden.jpg", "d.1/README", "d.1/.x", ".git/config",
                 "__m__/a.jpg", "sub/__m__/a.jpg", "line\nbreak")
        (self.root / "in/sub/loop").symlink_to(self.root / "in", target_is_directory=True)
        os.mkfifo(self.root / "in/fifo.jpg")
        made = pack(self.root / "in", self.root / "a", 1000)
        self.assertEqual(made.returncode, 0, made.stderr)
        self.assertEqual(self.packed(), ["a.jpg", "sub/__m__/a.jpg"])
        lines = made.stderr.splitlines()
        self.assertEqual(lines[-1], "make_shards: left out 8 files and directories")
        for name in ["LICENSE", ".hidden.jpg", "d.1/README", "d.1/.x", ".git", "__m__/a.jpg",
                     "line\\nbreak", "fifo.jpg"]:
            self.assertTrue([x for x in lines if x.startswith(f"make_shards: left out {name}: ")],
                            name)
        self.assertEqual(len(lines), 9)

    def test_two_files_that_are_one_field_of_a_sample_are_refused_before_anything_is_written(self):
        self.put("a.jpg", "a.JPG", "a.Jpg", "b.cls", "b.CLS", "c.jpg")
        made = pack(self.root / "in", self.root / "a", 1000)
        self.assertEqual(made.returncode, 1)
        for name, other in [("a.Jpg", "a.JPG"), ("a.jpg", "a.JPG"), ("b.cls", "b.CLS")]:
            self.assertIn(f"make_shards: {name} is the same field of a sample as {other}",
                          made.stderr)
        self.assertIn("3 files", made.stderr.splitlines()[-1])
        self.assertEqual(self.packed(), [])

    def test_errors_are_told(self):
        made = pack(self.root / "absent", self.root / "a", 1000)
        self.assertEqual(made.returncode, 1)
        self.assertIn("absent", made.stderr)
        self.assertEqual(subprocess.run([PROGRAM], capture_output=True).returncode, 2)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
