"""Random files of records, each beside what must be read from them.

records.py SEED DIRECTORY COUNT [PACKAGE] writes, COUNT times, a file of each format, or those that
a package writes, and the file "expected": for each of them a line with its name and how many
samples are in it, and a line for each sample, with its fields in order, as kind:value, separated by
spaces. Values are in hexadecimal digits but integers.
"""

import csv
import functools
import gzip
import importlib.util
import json
import math
import os
import random
import struct
import sys
import types
import unittest.mock

import numpy

rng = random.Random(int(sys.argv[1]))
directory = sys.argv[2]


def write(name, data):
    with open(os.path.join(directory, name), "wb") as file:
        file.write(data)


expected = open(os.path.join(directory, "expected"), "w")


def expect(name, samples):
    expected.write("%s %d\n" % (name, len(samples)))
    for fields in samples:
        expected.write(" ".join(fields) + "\n")


def random_bytes(most):
    return rng.randbytes(rng.randrange(most + 1))


def random_text(most=20):
    kinds = ["abc", ' ,"\\/\t', "\r\n\x00\x1f\x7f", "\u00e4\u20ac\u2028", "\U0001f600\U0010ffff"]
    return "".join(rng.choice(rng.choice(kinds)) for _ in range(rng.randrange(most + 1)))


def of_bytes(value):
    return "bytes:" + value.hex()


def of_text(value):
    return "text:" + value.encode().hex()


def of_integer(value):
    return "integer:%d" % value


def of_number(value):
    return "number:" + ("nan" if math.isnan(value) else struct.pack("<d", value).hex())


def of_array(value):
    kind = value.dtype.name.replace("uint", "u").replace("int", "i").replace("float", "f")
    return "tensor:%s:%s:%s" % (kind, ",".join(map(str, value.shape)), value.tobytes().hex())


# TFRecord and tf.train.Example.

def crc_table():
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        yield byte


crc_of_byte = list(crc_table())


def masked_crc(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ crc_of_byte[(crc ^ byte) & 255]
    crc ^= 0xFFFFFFFF
    return struct.pack("<I", (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF)


def record(data):
    length = struct.pack("<Q", len(data))
    return length + masked_crc(length) + data + masked_crc(data)


def varint(value):
    value &= (1 << 64) - 1
    data = b""
    while value > 127:
        data += bytes([value & 127 | 128])
        value >>= 7
    return data + bytes([value])


def message(number, data):
    return varint(number << 3 | 2) + varint(len(data)) + data


def int64_list(values):
    if rng.random() < 0.5:
        return b"".join(b"\x08" + varint(value) for value in values)
    return message(1, b"".join(map(varint, values))) if values else b""


def float_list(values):
    if rng.random() < 0.5:
        return b"".join(b"\x0d" + struct.pack("<f", value) for value in values)
    return message(1, struct.pack("<%df" % len(values), *values)) if values else b""


def random_feature():
    kind = rng.randrange(3)
    if kind == 0:
        values = [random_bytes(40) for _ in range(rng.randrange(4))]
        data = b"".join(message(1, value) for value in values)
        return message(1, data), [of_bytes(value) for value in values]
    if kind == 1:
        values = numpy.frombuffer(rng.randbytes(4 * rng.randrange(5)), numpy.float32)
        values = numpy.nan_to_num(values)
        one = of_number(float(values[0])) if len(values) == 1 else of_array(values)
        return message(2, float_list(values.tolist())), [one]
    values = [rng.randrange(-2 ** rng.randrange(64), 2 ** rng.randrange(64)) for _ in range(rng.randrange(5))]
    one = of_integer(values[0]) if len(values) == 1 else of_array(numpy.array(values, numpy.int64))
    return message(3, int64_list(values)), [one]


def random_example():
    features, fields = b"", []
    for i in range(rng.randrange(6)):
        data, values = random_feature()
        entry = [message(1, b"feature %d" % i), message(2, data)]
        rng.shuffle(entry)
        features += message(1, b"".join(entry))
        fields += values
    return message(1, features), fields


def gzip_some(i, data):
    return gzip.compress(data) if i % 3 == 0 else data


def write_tfrecord(i, compress=gzip_some):
    examples = [random_example() for _ in range(rng.randrange(30))]
    data = b"".join(record(example) for example, _ in examples)
    write("%d.tfrecord" % i, compress(i, data))
    expect("%d.tfrecord" % i, [fields for _, fields in examples])


# Megatron's .bin and .idx.

def write_tokens(i):
    code, kind = rng.choice([(1, "uint8"), (2, "int8"), (3, "int16"), (4, "int32"), (5, "int64"), (8, "uint16")])
    lengths = [rng.randrange(30) for _ in range(rng.randrange(20))]
    kind = numpy.dtype(kind)
    tokens = numpy.frombuffer(rng.randbytes(sum(lengths) * kind.itemsize), kind)
    ends = sorted(rng.sample(range(1, len(lengths)), rng.randrange(len(lengths)))) if len(lengths) > 1 else []
    documents = [0] + ends + ([len(lengths)] if lengths else [])
    pointers = numpy.cumsum([0] + lengths)[:-1] * kind.itemsize
    index = b"MMIDIDX\x00\x00" + struct.pack("<QBQQ", 1, code, len(lengths), len(documents))
    index += numpy.array(lengths, numpy.int32).tobytes() + pointers.astype(numpy.int64).tobytes()
    index += numpy.array(documents, numpy.int64).tobytes()
    write("%d.bin" % i, tokens.tobytes())
    write("%d.idx" % i, index)
    begins = numpy.cumsum([0] + lengths)[documents]
    samples = [[of_array(tokens[a:b])] for a, b in zip(begins, begins[1:])]
    expect("%d.idx" % i, samples)


# MDS.

scalars = ["uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64", "float16", "float32", "float64"]


def random_array(kind, shape):
    count = int(numpy.prod(shape))
    return numpy.frombuffer(rng.randbytes(count * numpy.dtype(kind).itemsize), kind).reshape(shape)


def random_shape():
    return tuple(rng.randrange(1, 5) for _ in range(rng.randrange(1, 4)))


def array_head(shape):
    width = rng.randrange(4)
    extents = numpy.array(shape, ["uint8", "uint16", "uint32", "uint64"][width])
    return bytes([len(shape) << 2 | width]) + extents.tobytes()


# Encoding, size, and a function that makes a value: its bytes and its field.
def random_column():
    kind = rng.choice(scalars)
    shape = random_shape()
    size = int(numpy.prod(shape)) * numpy.dtype(kind).itemsize
    codes = {"uint": 0, "int": 1, "float": 2}

    def scalar(kind=kind):
        value = random_array(kind, (1,)) & numpy.uint64(2**63 - 1) if kind == "uint64" else random_array(kind, (1,))
        field = of_number(float(value[0])) if kind.startswith("float") else of_integer(int(value[0]))
        return value.tobytes(), field

    def array():
        value = random_array(kind, shape)
        return value.tobytes(), of_array(value)

    def shaped():
        value = random_array(kind, random_shape())
        return array_head(value.shape) + value.tobytes(), of_array(value)

    def typed():
        data, field = shaped()
        name = kind.rstrip("0123456789")
        return bytes([int(kind[len(name):]) | codes[name]]) + data, field

    def of(make, field):
        value = make()
        return value if isinstance(value, bytes) else str(value).encode(), field(value)

    return rng.choice([
        ("bytes", None, lambda: of(lambda: random_bytes(30), of_bytes)),
        ("jpeg:80", None, lambda: of(lambda: random_bytes(30), of_bytes)),
        ("str", None, lambda: of(random_text, of_text)),
        ("json", None, lambda: of(lambda: json.dumps({"a": random_text()}), of_text)),
        ("str_int", None, lambda: of(lambda: rng.randrange(-2**63, 2**63), of_integer)),
        ("str_float", None, lambda: of(lambda: rng.uniform(-1, 1) * 10.0 ** rng.randrange(-300, 300), of_number)),
        ("int", 8, lambda: scalar("int64")),
        (kind, numpy.dtype(kind).itemsize, scalar),
        ("ndarray:%s:%s" % (kind, ",".join(map(str, shape))), size, array),
        ("ndarray:" + kind, None, shaped),
        ("ndarray", None, typed),
    ])


def mds_shard(columns, samples):
    rows = []
    for values in samples:
        heads = b"".join(struct.pack("<I", len(data)) for (_, size, _), (data, _) in zip(columns, values) if size is None)
        rows.append(heads + b"".join(data for data, _ in values))
    config = b'{"any": "thing"}'
    offsets = numpy.cumsum([4 * (len(rows) + 2) + len(config)] + [len(row) for row in rows]).astype(numpy.uint32)
    return struct.pack("<I", len(rows)) + offsets.tobytes() + config + b"".join(rows)


stored, by_gzip = (None, "", bytes), ("gz:6", ".gz", gzip.compress)


# `how`: what the index calls the compression, the extension of shards, and the function.
def write_mds(i, how=None):
    compression, extension, compress = how or [stored, by_gzip][i % 2]
    columns = [random_column() for _ in range(rng.randrange(1, 6))]
    shards, samples_of_all = [], []
    os.mkdir(os.path.join(directory, "%d.mds" % i))
    for k in range(rng.randrange(1, 4)):
        samples = [[make() for _, _, make in columns] for _ in range(rng.randrange(8))]
        samples_of_all += [[field for _, field in values] for values in samples]
        data = mds_shard(columns, samples)
        name = "shard.%05d.mds" % k
        packed = compress(data)
        write("%d.mds/%s" % (i, name + extension), packed)
        shards.append({
            "column_encodings": [encoding for encoding, _, _ in columns],
            "column_names": ["column %d" % c for c in range(len(columns))],
            "column_sizes": [size for _, size, _ in columns],
            "compression": compression, "format": "mds", "hashes": [],
            "raw_data": {"basename": name, "bytes": len(data), "hashes": {}},
            "samples": len(samples), "size_limit": 1 << 26, "version": 2,
            "zip_data": {"basename": name + extension, "bytes": len(packed), "hashes": {}} if compression else None,
        })
    index = json.dumps({"shards": shards, "version": 2}, indent=rng.choice([None, 2]))
    write("%d.mds/index.json" % i, index.encode())
    expect("%d.mds" % i, samples_of_all)


# JSON lines and CSV.

def random_value(levels):
    kind = rng.randrange(8 if levels else 6)
    if kind == 0:
        return None
    if kind == 1:
        return rng.random() < 0.5
    if kind == 2:
        return rng.randrange(-2**63, 2**63) >> rng.randrange(64)
    if kind == 3:
        return rng.uniform(-1, 1) * 10.0 ** rng.randrange(-300, 300)
    if kind < 6:
        return random_text()
    if kind == 6:
        return [random_value(levels - 1) for _ in range(rng.randrange(4))]
    return {random_text() + str(i): random_value(levels - 1) for i in range(rng.randrange(4))}


def of_value(value, dump):
    if isinstance(value, bool) or isinstance(value, int):
        return of_integer(value)
    if isinstance(value, float):
        return of_number(value)
    return of_text(value if isinstance(value, str) else dump(value))


def write_json_lines(i, compress=gzip_some):
    ascii = rng.random() < 0.5
    separators = rng.choice([(",", ":"), (", ", ": "), (" ,\t", " : ")])

    def dump(value):
        return json.dumps(value, ensure_ascii=ascii, separators=separators)

    text, samples = "", []
    for _ in range(rng.randrange(30)):
        row = {random_text() + str(c): random_value(3) for c in range(rng.randrange(6))}
        text += dump(row) + rng.choice(["\n", "\r\n", "\n\n"])
        samples.append([of_value(value, dump) for value in row.values() if value is not None])
    data = text.encode()
    write("%d.jsonl" % i, compress(i, data))
    expect("%d.jsonl" % i, samples)


def write_csv(i):
    path = os.path.join(directory, "%d.csv" % i)
    columns = rng.randrange(1, 6)
    # With "\n" alone, Python leaves cells without quotes that have a "\r".
    quoting, end = rng.choice([(csv.QUOTE_MINIMAL, "\r\n"), (csv.QUOTE_ALL, "\n")])
    rows = [["".join(c for c in random_text() if c != "\0") for _ in range(columns)] for _ in range(rng.randrange(30))]
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, quoting=quoting, lineterminator=end)
        writer.writerow(["path"] + ["column %d" % c for c in range(columns)])
        writer.writerows(["file"] + row for row in rows)
    with open(path, newline="", encoding="utf-8") as file:
        read = list(csv.reader(file, strict=True))[1:]
    assert [row[1:] for row in read] == rows
    expect("%d.csv" % i, [[of_text(cell) for cell in row] for row in rows])


# The same files, compressed by the package zstandard.
def write_zstandard(i):
    import zstandard

    def frame(data):
        options = {"level": rng.choice([-3, 1, 3]), "write_checksum": rng.random() < 0.5}
        if rng.random() < 0.3:  # a frame that does not say how long it is
            compressor = zstandard.ZstdCompressor(**options).compressobj()
            return compressor.compress(data) + compressor.flush()
        return zstandard.ZstdCompressor(**options).compress(data)

    def compress(_, data):
        cut = rng.randrange(len(data) + 1)
        return frame(data[:cut]) + frame(data[cut:]) if rng.random() < 0.3 else frame(data)

    write_tfrecord(i, compress)
    write_json_lines(i, compress)
    write_mds(i, ("zstd:3", ".zstd", frame))


# MosaicML's writer. What else its package imports are clients of object stores and torch, which are
# gigabytes and not needed: they are replaced where they are absent.
@functools.cache
def mds_writer():
    try:
        from streaming import MDSWriter
    except ImportError:
        (folder,) = importlib.util.find_spec("streaming").submodule_search_locations
        for name, path in {"streaming": folder, "streaming.base": os.path.join(folder, "base")}.items():
            sys.modules[name] = types.ModuleType(name)
            sys.modules[name].__path__ = [path]
        for name in "torch", "torch.distributed", "torch.utils", "torch.utils.data":
            sys.modules[name] = unittest.mock.MagicMock()
        from streaming.base.format.mds.writer import MDSWriter
    return MDSWriter


# What MosaicML's package writes.
def write_streaming(i):

    def random_value_of(encoding):
        if encoding == "bytes":
            value = random_bytes(30)
            return value, of_bytes(value)
        if encoding == "str":
            value = random_text()
            return value, of_text(value)
        if encoding == "json":
            value = {"a": random_value(2)}
            return value, of_text(json.dumps(value))
        if encoding in ["int", "str_int"]:
            value = rng.randrange(-2**63, 2**63)
            return value, of_integer(value)
        if encoding == "str_float":
            value = rng.uniform(-1, 1) * 10.0 ** rng.randrange(-300, 300)
            return value, of_number(value)
        if encoding in scalars:
            value = numpy.nan_to_num(random_array(encoding, (1,)))[0]
            if encoding == "uint64":
                value &= numpy.uint64(2**63 - 1)
            return value, of_number(float(value)) if encoding.startswith("float") else of_integer(int(value))
        _, kind, shape = (encoding + "::").split(":")[:3]
        shape = tuple(map(int, shape.split(","))) if shape else random_shape()
        value = random_array(kind or rng.choice(scalars), shape)
        return value, of_array(value)

    encodings = ["bytes", "str", "json", "int", "str_int", "str_float", "ndarray", "ndarray:int16",
                 "ndarray:float32:2,3", *scalars]
    columns = {"c%d" % c: rng.choice(encodings) for c in range(rng.randrange(1, 6))}
    samples = []
    with mds_writer()(out=os.path.join(directory, "%d.mds" % i), columns=columns,
                   compression=rng.choice([None, "gz", "zstd:3"]), hashes=rng.choice([None, ["sha1", "xxh64"]]),
                   size_limit=rng.choice([2000, 1 << 20]), progress_bar=False) as out:
        for _ in range(rng.randrange(1, 30)):
            values = {name: random_value_of(encoding) for name, encoding in columns.items()}
            out.write({name: value for name, (value, _) in values.items()})
            samples.append([field for _, field in values.values()])
    expect("%d.mds" % i, samples)


# What the package webdataset writes, and reads back.
def write_webdataset(i):
    import webdataset

    values = {"txt": random_text, "cls": lambda: rng.randrange(1000), "seg.png": lambda: random_bytes(700),
              "json": lambda: {"a": random_text()}, "npy": lambda: random_array("float32", random_shape())}
    path = os.path.join(directory, "%d.tar" % i)
    with webdataset.TarWriter(path, compress=rng.random() < 0.3) as out:
        for k in range(rng.randrange(20)):
            key = "%s%06d" % (rng.choice(["", "d/", "d/e.f/"]), k)
            out.write({"__key__": key, "jpg": random_bytes(2000),
                       **{name: make() for name, make in values.items() if rng.random() < 0.6}})
    read = webdataset.WebDataset(path, shardshuffle=False, empty_check=False)
    expect("%d.tar" % i, [[sample["__key__"].encode().hex()] +
                          ["%s=%s" % (name, value.hex()) for name, value in sample.items() if name[0] != "_"]
                          for sample in read])


def write_each(i):
    write_tfrecord(i)
    write_tokens(i)
    write_mds(i)
    write_json_lines(i)
    write_csv(i)


write_one = {"zstandard": write_zstandard, "streaming": write_streaming, "webdataset": write_webdataset}
for i in range(int(sys.argv[3])):
    write_one.get(" ".join(sys.argv[4:]), write_each)(i)
