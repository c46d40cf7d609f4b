# make_shards_test.py PROGRAM: the archives that make_shards writes, read by Python's tarfile.
import pathlib
import random
import subprocess
import sys
import tarfile
import tempfile
import unittest

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

    def test_errors_are_told(self):
        made = pack(self.root / "absent", self.root / "a", 1000)
        self.assertEqual(made.returncode, 1)
        self.assertIn("absent", made.stderr)
        self.assertEqual(subprocess.run([PROGRAM], capture_output=True).returncode, 2)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
