# tokens_test.py PROGRAM: the example reads a data set of Megatron.
import pathlib
import random
import struct
import subprocess
import sys
import tempfile
import unittest

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
    def test_it_counts_windows_and_tokens(self):
        draw = random.Random(7)
        documents = [[draw.randrange(2**16) for _ in range(draw.randrange(1, 90))] for _ in range(200)]
        with tempfile.TemporaryDirectory() as directory:
            write_megatron(f"{directory}/train", documents)
            program = subprocess.run([PROGRAM, f"{directory}/train", "32"], capture_output=True,
                                     text=True)
        windows = (sum(map(len, documents)) - 33) // 32 + 1
        self.assertEqual(program.stderr, "")
        self.assertEqual(program.stdout, f"200 documents, {windows} windows, {-(-windows // 8)} steps, "
                                         f"{32 * windows} tokens\n")

    def test_a_file_that_is_missing_is_named(self):
        program = subprocess.run([PROGRAM, "/nowhere/train"], capture_output=True, text=True)
        self.assertEqual(program.returncode, 1)
        self.assertIn("/nowhere/train", program.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
