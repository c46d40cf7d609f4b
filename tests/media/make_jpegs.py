"""JPEGs by several writers, of random sizes and kinds, for LADE_JPEG_FOLDER of jpeg_files_test.

make_jpegs.py DIRECTORY [--files N] [--seed S] [--cjpeg mozjpeg=PATH]... writes N files of each
writer: Pillow 11 or later, ImageMagick, FFmpeg, and each cjpeg program that is named. The same
seed and versions of the writers make the same files.
"""

import argparse
import io
import random
import struct
import subprocess
from pathlib import Path

from PIL import Image, ImageFile

SAMPLINGS = ["1x1", "2x1", "1x2", "2x2", "4x1"]
ODD_SAMPLINGS = ["4x2", "2x4", "1x4", "3x1", "2x2,2x1,2x1", "1x1,2x2,2x2"]
ImageFile.MAXBLOCK = 1 << 20  # Pillow writes small images with long comments only then
RARE = 25  # one file in as many is of a kind that lade leaves to libjpeg-turbo


def one_in(draw, count):
    return draw.randrange(count) == 0


def photo(draw):
    """Soft shapes and noise, 1 to 300 pixels in both directions."""
    most = draw.randint(1, 300)
    width, height = draw.randint(1, most), draw.randint(1, most)
    mode, channels = ("L", 1) if one_in(draw, 6) else ("RGB", 3)
    soft = Image.frombytes(mode, (7, 5), draw.randbytes(35 * channels)).resize((width, height))
    noise = Image.frombytes(mode, (width, height), draw.randbytes(width * height * channels))
    return Image.blend(soft, noise, draw.choice([0, 0.02, 0.1, 0.3, 1]))


def by_pillow(draw, image):
    options = {"quality": draw.randint(1, 100), "optimize": one_in(draw, 2)}
    options["progressive"] = one_in(draw, RARE)
    if one_in(draw, RARE):
        image = image.convert("CMYK")
    if image.mode == "RGB":
        options |= {"keep_rgb": True} if one_in(draw, 8) else {"subsampling": draw.randrange(3)}
    if one_in(draw, 4):
        options["restart_marker_blocks"] = draw.randint(1, 40)
    elif one_in(draw, 4):
        options["restart_marker_rows"] = draw.randint(1, 3)
    if one_in(draw, 8):
        del options["quality"]
        options["qtables"] = [[draw.randint(1, 255) for _ in range(64)] for _ in range(2)]
    if one_in(draw, 4):
        exif = Image.Exif()
        exif[0x112] = draw.randint(1, 8)  # orientation
        options["exif"] = exif
    if one_in(draw, 4):
        options["comment"] = "x" * draw.randint(0, 300)
    file = io.BytesIO()
    image.save(file, "JPEG", **options)
    return file.getvalue()


def piped(command, image):
    """What a program that reads PNM prints."""
    given = io.BytesIO()
    image.save(given, "PPM")
    return subprocess.run(command, input=given.getvalue(), capture_output=True, check=True).stdout


def sampling_of(draw):
    return draw.choice(ODD_SAMPLINGS if one_in(draw, RARE) else SAMPLINGS)


def by_imagemagick(draw, image):
    command = ["/usr/bin/convert", "pnm:-", "-quality", str(draw.randint(1, 100))]
    command += ["-sampling-factor", sampling_of(draw)]
    command += ["-define", f"jpeg:optimize-coding={draw.choice(['true', 'false'])}"]
    if one_in(draw, RARE):
        command += draw.choice([["-interlace", "Plane"], ["-colorspace", "CMYK"]])
    if one_in(draw, 8):
        command += ["-colorspace", "RGB"]
    if one_in(draw, 4):
        command += ["-density", "300", "-comment", "x" * draw.randint(1, 300)]
    return piped([*command, "jpeg:-"], image)


def by_ffmpeg(draw, image):
    # Its others have sampling that lade leaves to libjpeg-turbo.
    pixels = draw.choice(["yuvj422p", "yuvj444p"]) if one_in(draw, RARE) else "yuvj420p"
    command = ["ffmpeg", "-v", "error", "-f", "image2pipe", "-i", "-", "-pix_fmt", pixels]
    command += ["-q:v", str(draw.randint(1, 31)), "-qmin", "1"]
    command += ["-huffman", draw.choice(["default", "optimal"]), "-frames:v", "1"]
    return piped([*command, "-f", "mjpeg", "-"], image)


def by_cjpeg(program, mozjpeg):
    def write(draw, image):
        command = [program, "-quality", str(draw.randint(1, 100)), "-sample", sampling_of(draw)]
        if mozjpeg:
            command += ["-revert"] if one_in(draw, 3) else []
            command += ["-quant-table", str(draw.randrange(9)), "-quant-baseline"]
        unusual = one_in(draw, RARE)  # mozjpeg: progressive; others: tables of 16 bits
        command += [] if unusual else ["-baseline"]
        if one_in(draw, 2):
            command += ["-optimize"]
        if one_in(draw, 3) and not (mozjpeg and unusual):  # mozjpeg 4.1 writes damaged ones
            command += ["-restart", draw.choice(["1", "2", "3"]) if one_in(draw, 2)
                        else f"{draw.randint(1, 40)}B"]
        if image.mode == "RGB" and one_in(draw, 8):
            command += ["-rgb"]
        return piped(command, image)

    return write


def segments_of(file):
    """The segments between SOI and the first scan, and the rest."""
    at, segments = 2, []
    while file[at + 1] != 0xDA:
        length = 2 + struct.unpack(">H", file[at + 2 : at + 4])[0]
        segments.append(file[at : at + length])
        at += length
    return segments, file[at:]


def segment(marker, content):
    return struct.pack(">BBH", 0xFF, marker, len(content) + 2) + content


def exif_of(orientation):
    entry = struct.pack("<HHIHH", 0x112, 3, 1, orientation, 0)
    return b"Exif\0\0II*\0\x08\0\0\0\x01\0" + entry + b"\0\0\0\0"


def with_other_markers(draw, file):
    """Adds and removes markers of colours, of orientation, and comments."""
    segments, rest = segments_of(file)
    if one_in(draw, 4):
        segments = [each for each in segments if each[1] != 0xE0]
    extra = []
    inks = any(each[1] in (0xC0, 0xC1, 0xC2) and each[9] == 4 for each in segments)
    if one_in(draw, 4) and not inks:
        adobe = b"Adobe\0\x64\0\0\0\0" + bytes([draw.randrange(2)])
        extra.append(segment(0xEE, adobe))
    if one_in(draw, 5):
        extra.append(segment(0xE1, exif_of(draw.randint(1, 8))))
    if one_in(draw, 5):
        extra.append(segment(0xFE, draw.randbytes(draw.randint(0, 200))))
    for each in extra:
        segments.insert(draw.randint(0, len(segments)), each)
    return file[:2] + b"".join(segments) + rest


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("directory", type=Path)
    parser.add_argument("--files", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    parser.add_argument("--cjpeg", action="append", default=[])
    given = parser.parse_args()
    writers = {"pillow": by_pillow, "imagemagick": by_imagemagick, "ffmpeg": by_ffmpeg}
    for each in given.cjpeg:
        name, program = each.split("=", 1)
        writers[name] = by_cjpeg(program, mozjpeg=name == "mozjpeg")
    print("seed", given.seed)
    for name, write in writers.items():
        folder = given.directory / name
        folder.mkdir(parents=True, exist_ok=True)
        draw = random.Random(f"{given.seed} {name}")
        for i in range(given.files):
            file = write(draw, photo(draw))
            if one_in(draw, 3):
                file = with_other_markers(draw, file)
            (folder / f"{i:05}.jpg").write_bytes(file)


if __name__ == "__main__":
    main()
