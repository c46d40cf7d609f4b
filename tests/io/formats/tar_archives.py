"""Archives that Python's tarfile writes, each beside what tarfile reads of it.

tar_archives.py DIRECTORY SEED COUNT writes NUMBER.tar (also .tar.gz and .tar.zst, if zstandard is
installed) and NUMBER.txt: a line "NAME-IN-HEX OFFSET SIZE NANOSECONDS MODE CRC" for each regular
file. A member of several gigabytes is a hole in its archive, and its checksum is 0.
"""

import gzip
import io
import os
import random
import sys
import tarfile
import zlib

try:
    import zstandard
except ImportError:
    zstandard = None

FORMATS = [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT]
OTHERS = [tarfile.DIRTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE]
LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789.-_ "


def random_name(draw, form):
    letters = LETTERS + ("äß漢字🙂" if draw.random() < 0.3 else "")
    parts = draw.choice([1, 2, 3, 8])
    longest = 12 if form == tarfile.USTAR_FORMAT else draw.choice([12, 40, 300])
    words = ["".join(draw.choices(letters, k=draw.randint(1, longest))) for _ in range(parts)]
    return "/".join("x" + word.replace(" ", "_") for word in words)


def random_member(draw, form):
    member = tarfile.TarInfo(random_name(draw, form))
    member.mode = draw.randrange(0o10000)
    least = -(2**31) if form != tarfile.USTAR_FORMAT else 0
    member.mtime = draw.randrange(least, 2**32)
    if form == tarfile.PAX_FORMAT and draw.random() < 0.5:
        member.mtime += draw.randrange(8) / 8
    member.uid = draw.choice([0, 1000, 2**21 - 1 if form == tarfile.USTAR_FORMAT else 2**30])
    member.uname = draw.choice(["", "somebody"])
    if draw.random() < 0.2:
        member.type = draw.choice(OTHERS)
    elif form == tarfile.PAX_FORMAT and draw.random() < 0.3:
        member.pax_headers = {"comment": "c" * draw.randrange(2000), "SCHILY.xattr.a": "b=\nc"}
    return member


def fits(member, form):
    try:
        member.tobuf(form)
    except ValueError:  # ustar has no room for the name
        return False
    return True


def random_archive(draw):
    form = draw.choice(FORMATS)
    headers = {"comment": "of all"} if form == tarfile.PAX_FORMAT and draw.random() < 0.3 else {}
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w", format=form, pax_headers=headers) as archive:
        for _ in range(draw.randrange(1, 12)):
            member = random_member(draw, form)
            while not fits(member, form):
                member = random_member(draw, form)
            content = draw.randbytes(draw.choice([0, 1, 511, 512, 513, draw.randrange(20000)]))
            member.size = len(content) if member.isreg() else 0
            archive.addfile(member, io.BytesIO(content))
    return file.getvalue()


def line_of(archive, member, with_content=True):
    name = member.name.encode("utf-8", "surrogateescape").hex()
    nanoseconds = int(member.mtime * 8) * 125_000_000
    crc = zlib.crc32(archive.extractfile(member).read()) if with_content else 0
    return f"{name} {member.offset_data} {member.size} {nanoseconds} {member.mode} {crc}\n"


def compressed(draw, data):
    kind = draw.choice(["", ".gz", ".zst"])
    if kind == ".gz":
        half = draw.randrange(len(data))
        return kind, gzip.compress(data[:half]) + gzip.compress(data[half:])
    if kind == ".zst" and zstandard:
        return kind, zstandard.ZstdCompressor(level=draw.choice([1, 19])).compress(data)
    return "", data


def write_large(path, form):
    """A member of more than eight gigabytes between two small ones."""
    with open(path, "wb") as file:
        for name, size in [("before", 3), ("large", (9 << 30) + 5), ("after", 4)]:
            member = tarfile.TarInfo(name)
            member.size = size
            file.write(member.tobuf(form))
            end = file.tell() + (size + 511) // 512 * 512
            file.write(b"x" * min(size, 10))
            file.seek(end)
        file.write(bytes(1024))


def main():
    directory, seed, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    draw = random.Random(seed)
    for number in range(count):
        data = random_archive(draw)
        kind, stored = compressed(draw, data)
        base = os.path.join(directory, str(number))
        with open(base + ".tar" + kind, "wb") as file:
            file.write(stored)
        with tarfile.open(fileobj=io.BytesIO(data)) as archive, open(base + ".txt", "w") as text:
            text.writelines(line_of(archive, m) for m in archive.getmembers() if m.isreg())
    for name, form in [("gnu", tarfile.GNU_FORMAT), ("pax", tarfile.PAX_FORMAT)]:
        base = os.path.join(directory, "large-" + name)
        write_large(base + ".tar", form)
        with tarfile.open(base + ".tar") as archive, open(base + ".txt", "w") as text:
            text.writelines(line_of(archive, m, False) for m in archive.getmembers())


main()
