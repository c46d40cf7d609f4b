# tokens_test.py PROGRAM: the example reads a data set of Megatron, of a disk and of a web server.
# Exits with 77 if a case was skipped.
import pathlib
import random
import struct
import subprocess
import sys
import tempfile
import unittest

from notices import without_notices
from servers import find_nginx, Nginx
from web_store import WebStore

PROGRAM = sys.argv[1]


def write_megatron(prefix, documents):
    lengths = [len(each) for each in documents]
    starts = [2 * sum(lengths[:i]) for i in range(len(lengths))]
    index = b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, 8, len(lengths), len(lengths) + 1)
    index += struct.pack(f"<{len(lengths)}i", *lengths) + struct.pack(f"<{len(lengths)}q", *starts)
    index += struct.pack(f"<{len(lengths) + 1}q", *range(len(lengths) + 1))
    pathlib.Path(f"{prefix}.idx").write_bytes(index)
    pathlib.Path(f"{prefix}.bin").write_bytes(
        b"".join(struct.pack(f"<{len(each)}H", *each) for each in documents))


class Tokens(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.prefix = pathlib.Path(directory.name) / "train"
        draw = random.Random(7)
        documents = [[draw.randrange(2**16) for _ in range(draw.randrange(1, 90))] for _ in range(200)]
        write_megatron(self.prefix, documents)
        self.windows = (sum(map(len, documents)) - 33) // 32 + 1

    def check(self, prefix):
        program = subprocess.run([PROGRAM, prefix, "32"], capture_output=True, text=True)
        self.assertEqual(without_notices(program.stderr), "")
        self.assertEqual(program.stdout, f"200 documents, {self.windows} windows, "
                                         f"{-(-self.windows // 8)} steps, {32 * self.windows} tokens\n")

    def test_it_counts_windows_and_tokens(self):
        self.check(self.prefix)

    def test_of_a_web_server_each_window_is_a_request(self):
        files = {f"/train{each}": self.prefix.with_suffix(each).read_bytes() for each in [".bin", ".idx"]}
        store = WebStore(files)
        self.addCleanup(store.close)
        self.check(f"{store.url}/train")
        self.assertLessEqual(store.requests["/train.bin"], self.windows + 1)
        self.assertLessEqual(store.requests["/train.idx"], 2)
        self.assertLess(store.bytes_of_parts, 66 * self.windows + sum(map(len, files.values())))

    @unittest.skipUnless(find_nginx(), "nginx is not installed")
    def test_of_nginx_each_window_is_a_part(self):
        files = {f"/train{each}": self.prefix.with_suffix(each).read_bytes() for each in [".bin", ".idx"]}
        server = Nginx(files)
        self.addCleanup(server.directory.cleanup)
        self.addCleanup(server.close)
        self.check(f"{server.url}/train")
        server.close()
        parts = server.bytes_of_parts()
        self.assertGreaterEqual(parts, 64 * self.windows)
        self.assertLess(parts, 66 * self.windows + sum(map(len, files.values())))

    def test_a_file_that_is_missing_is_named(self):
        program = subprocess.run([PROGRAM, "/nowhere/train"], capture_output=True, text=True)
        self.assertEqual(program.returncode, 1)
        self.assertIn("/nowhere/train", program.stderr)


if __name__ == "__main__":
    result = unittest.main(argv=sys.argv[:1], exit=False).result
    sys.exit(1 if not result.wasSuccessful() else 77 if result.skipped else 0)  # 77: see Meson
