"""Random files of one format, each beside what it must be read as.

arrays.py FORMAT COUNT SEED writes to standard output, for each file: the number of the bytes of the
file, the file, the number of the bytes of what is in it, and that. Numbers have 8 bytes.

What is in it: for each value, lines with its name, its type and its shape, then its elements, in C
order and little endian. Bytes are of the type "bytes", and their shape is their number.
"""

import io
import json
import random
import struct
import sys
import zipfile

import numpy

NAMES = {"b1": "bool", "u1": "u8", "i1": "i8", "u2": "u16", "i2": "i16", "u4": "u32", "i4": "i32",
         "u8": "u64", "i8": "i64", "f2": "f16", "f4": "f32", "f8": "f64"}


def described(name, array):
    code = array.dtype.str[1:]
    shape = " ".join(map(str, array.shape))
    data = array.astype(array.dtype.newbyteorder("<")).tobytes("C")
    return f"{name}\n{NAMES[code]}\n{shape}\n".encode() + data


def described_bytes(name, data):
    return name.encode() + f"\nbytes\n{len(data)}\n".encode() + data


def some_array(draw):
    shape = [draw.choice([0, 1, 1, 2, 3, 5, 8]) for _ in range(draw.choice([0, 1, 1, 2, 2, 3, 4, 8]))]
    code = draw.choice(list(NAMES))
    raw = numpy.frombuffer(draw.randbytes(int(numpy.prod(shape, dtype=int)) * 8), numpy.uint8)
    raw = raw % 2 if code == "b1" else raw
    count = int(numpy.prod(shape, dtype=int))
    size = numpy.dtype(code).itemsize
    array = raw[: count * size].view(code).reshape(shape)
    array = numpy.asarray(array, dtype=draw.choice("<>") + code)
    order = draw.choice("CF")
    return numpy.array(array, order=order)


def npy(draw):
    array = some_array(draw)
    file = io.BytesIO()
    numpy.lib.format.write_array(file, array, draw.choice([None, (1, 0), (2, 0), (3, 0)]))
    return file.getvalue(), described("array", array)


def npz(draw):
    arrays = {f"{chr(97 + i)}{'x' * draw.randrange(9)}": some_array(draw) for i in range(draw.randrange(6))}
    file = io.BytesIO()
    draw.choice([numpy.savez, numpy.savez_compressed])(file, **arrays)
    return file.getvalue(), b"".join(described(*each) for each in arrays.items())


def some_bytes(draw):
    size = draw.choice([0, 1, 10, 1000, draw.randrange(20000)])
    return draw.choice([draw.randbytes(size), bytes(size), b"abcd" * (size // 4)])


class NoSeek(io.RawIOBase):
    """A file that cannot go back: sizes and checksums follow the data."""

    def __init__(self, into):
        self.into = into

    def writable(self):
        return True

    def write(self, data):
        return self.into.write(data)


def zip(draw):
    file = io.BytesIO()
    file.write(draw.choice([b"", b"", b"#!prefix\n"]))
    members = {}
    plain = draw.random() < 0.7
    with zipfile.ZipFile(file if plain else NoSeek(file), "w") as archive:
        for i in range(draw.randrange(8)):
            name = f"{draw.choice(['', 'd/', 'ä/'])}{i}{'n' * draw.randrange(30)}"
            info = zipfile.ZipInfo(name)
            info.compress_type = draw.choice([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
            info.extra = struct.pack("<HHI", 0x7777, 4, i) if draw.random() < 0.3 else b""
            info.comment = b"c" * draw.choice([0, 0, 5])
            members[name] = some_bytes(draw)
            with archive.open(info, "w", force_zip64=draw.random() < 0.4) as member:
                member.write(members[name])
        archive.comment = b"k" * draw.choice([0, 0, 7, 65535])
    return file.getvalue(), b"".join(described_bytes(*each) for each in members.items())


# A WAV file with chunks of any size in front of its data.
def with_chunks(file, draw):
    at = 12
    while file[at:at + 4] != b"data":
        at += 8 + struct.unpack("<I", file[at + 4:at + 8])[0]
    chunks = b""
    for _ in range(draw.choice([0, 1, 3])):
        size = draw.choice([0, 1, 2, 7, 5000])
        chunks += b"junk" + struct.pack("<I", size) + bytes(size + size % 2)
    riff = struct.unpack("<I", file[4:8])[0] + len(chunks)
    return file[:4] + struct.pack("<I", riff) + file[8:at] + chunks + file[at:]


def wav(draw):
    import soundfile

    subtype = draw.choice(["PCM_U8", "PCM_16", "PCM_24", "PCM_32", "FLOAT", "DOUBLE"])
    channels, frames = draw.choice([1, 1, 2, 6]), draw.choice([0, 1, 2, draw.randrange(3000)])
    raw = numpy.frombuffer(draw.randbytes(frames * channels * 4), numpy.int32).reshape(frames, channels)
    raw = raw / 2.0**31 if subtype in ["FLOAT", "DOUBLE"] else raw
    file = io.BytesIO()
    kind = draw.choice(["WAV", "WAVEX", "RF64"])
    soundfile.write(file, raw, draw.choice([8000, 44100]), subtype, format=kind)
    content = file.getvalue() if kind == "RF64" else with_chunks(file.getvalue(), draw)

    def read(dtype):
        return soundfile.read(io.BytesIO(content), dtype=dtype, always_2d=True)[0]

    samples = {"PCM_U8": lambda: ((read("int16") >> 8) + 128).astype("u1"),
               "PCM_16": lambda: read("int16"), "PCM_24": lambda: read("int32") >> 8,
               "PCM_32": lambda: read("int32"), "FLOAT": lambda: read("float32"),
               "DOUBLE": lambda: read("float64")}[subtype]()
    return content, described("audio", samples) + described("f32", read("float32"))


# In the order of the reference implementation, which aligns them, or in any other.
def safetensors(draw):
    arrays = {f"t{i}.{'ä' * draw.randrange(3)}": some_array(draw) for i in range(draw.randrange(6))}
    order = list(arrays.items())
    if draw.random() < 0.5:
        order.sort(key=lambda each: -each[1].dtype.itemsize)
    header, data = {}, b""
    if draw.random() < 0.5:
        header["__metadata__"] = {"format": "pt", "x": "\u20ac\n"}
    for name, array in order:
        elements = array.astype(array.dtype.newbyteorder("<")).tobytes("C")
        header[name] = {"dtype": NAMES[array.dtype.str[1:]].upper(), "shape": list(array.shape),
                        "data_offsets": [len(data), len(data) + len(elements)]}
        data += elements
    members = list(header.items())
    draw.shuffle(members)
    text = json.dumps(dict(members), ensure_ascii=draw.random() < 0.5).encode()
    text += b" " * (-len(text) % draw.choice([1, 8]))
    return struct.pack("<Q", len(text)) + text + data, b"".join(described(*each) for each in sorted(order))


# What the reference implementation writes.
def safetensors_package(draw):
    from safetensors.numpy import save

    arrays = {f"t{i}.{'ä' * draw.randrange(3)}": some_array(draw) for i in range(draw.randrange(6))}
    arrays = {name: numpy.ascontiguousarray(array, array.dtype.newbyteorder("=")).reshape(array.shape)
              for name, array in arrays.items()}
    metadata = draw.choice([None, {"format": "pt", "x": "\u20ac\n"}])
    return save(arrays, metadata), b"".join(described(*each) for each in sorted(arrays.items()))


def main(kind, count, seed):
    draw = random.Random(seed)
    for _ in range(int(count)):
        for part in globals()[kind](draw):
            sys.stdout.buffer.write(struct.pack("<Q", len(part)) + part)


if __name__ == "__main__":
    main(*sys.argv[1:])
