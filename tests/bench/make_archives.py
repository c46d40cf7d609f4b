#!/usr/bin/env python3
"""Makes the archives that readers are measured with: a directory of files for each format and size
of items. Contents have four bits of information to a byte, so deflate halves them."""

import argparse
import io
import random
import struct
import tarfile
import wave
import zipfile
from pathlib import Path

SIZES = {"4k": 4096, "110k": 110_000, "4m": 4 << 20}
COUNTS = {"4k": 4000, "110k": 1000, "4m": 40}  # items of each size
SHARDS = 2  # of tar and TFRecord
HALF = bytes(((value & 15) * 7 + 60) for value in range(256))
CRC32C = 0x82F63B78


class Contents:
    """Pieces of bytes that differ, cut out of a few megabytes."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.all = self.random.randbytes(12 << 20).translate(HALF)

    def take(self, count):
        begin = self.random.randrange((len(self.all) - count) // 64) * 64
        return self.all[begin : begin + count]


def npy(content):
    """An array of 32-bit integers, as numpy.save writes it."""
    shape = f"({len(content) // 4},)"
    header = f"{{'descr': '<i4', 'fortran_order': False, 'shape': {shape}, }}"
    header = header.ljust(128 - 11) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + content


def npz(content, method):
    """Two arrays, as numpy.savez and savez_compressed write them."""
    out = io.BytesIO()
    half = len(content) // 8 * 4
    with zipfile.ZipFile(out, "w", method) as archive:
        archive.writestr("x.npy", npy(content[:half]))
        archive.writestr("y.npy", npy(content[half : len(content) // 4 * 4]))
    return out.getvalue()


def wav(content):
    out = io.BytesIO()
    with wave.open(out, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(16000)
        file.writeframes(content[: len(content) // 2 * 2])
    return out.getvalue()


def masked_crc(content):
    """The checksum of TFRecord: CRC-32C, rotated, and a constant added."""
    table = []
    for crc in range(256):
        for _ in range(8):
            crc = crc >> 1 ^ (CRC32C if crc & 1 else 0)
        table.append(crc)
    crc = 0xFFFFFFFF
    for byte in content:
        crc = crc >> 8 ^ table[(crc ^ byte) & 255]
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def tfrecord(content):
    length = struct.pack("<Q", len(content))
    checks = (struct.pack("<I", masked_crc(part)) for part in (length, content))
    return length + next(checks) + content + next(checks)


def write_shards(directory, extension, begin, records, end=b""):
    for shard in range(SHARDS):
        with open(directory / f"{shard}.{extension}", "wb") as out:
            out.write(begin)
            for record in records[shard::SHARDS]:
                out.write(record)
            out.write(end)


def tar_record(name, content):
    info = tarfile.TarInfo(name)
    info.size = len(content)
    return info.tobuf(tarfile.USTAR_FORMAT) + content + bytes(-len(content) % 512)


def make_shards(out, size, contents):
    names = (f"{number:06d}.bin" for number in range(COUNTS[size]))
    members = [tar_record(name, contents.take(SIZES[size])) for name in names]
    (out / f"tar-{size}").mkdir()
    write_shards(out / f"tar-{size}", "tar", b"", members, bytes(1024))
    # The checksum takes Python long: a few different records.
    different = [tfrecord(contents.take(SIZES[size])) for _ in range(2 if size == "4m" else 8)]
    records = [different[number % len(different)] for number in range(COUNTS[size])]
    (out / f"tfrecord-{size}").mkdir()
    write_shards(out / f"tfrecord-{size}", "tfrecord", b"", records)


MAKERS = {
    "npy": ("npy", npy),
    "npz": ("npz", lambda content: npz(content, zipfile.ZIP_STORED)),
    "npz-deflated": ("npz", lambda content: npz(content, zipfile.ZIP_DEFLATED)),
    "wav": ("wav", wav),
}


def make_files(out, size, contents):
    for name, (extension, make) in MAKERS.items():
        directory = out / f"{name}-{size}"
        directory.mkdir()
        for number in range(COUNTS[size] // 2):
            content = make(contents.take(SIZES[size]))
            (directory / f"{number:06d}.{extension}").write_bytes(content)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="directory to write to")
    out = parser.parse_args().out
    out.mkdir(parents=True)
    contents = Contents(1)
    for size in SIZES:
        make_shards(out, size, contents)
        make_files(out, size, contents)


if __name__ == "__main__":
    main()
