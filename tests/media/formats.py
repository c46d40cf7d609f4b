"""Image files of every kind that a format has, each beside the pixels that it must decode to.

formats.py PHOTO DIRECTORY writes NAME.EXTENSION and NAME.EXTENSION.raw: a line "<width> <height>
<channels>", then RGB. The pixels are the generator's own arrays wherever a kind is lossless, else
what the format's own tools or Pillow decode.

formats.py --large DIRECTORY writes images of 2000 x 1500 without their pixels, one of each kind that
is decoded in memory of another size.
"""

import os
import shutil
import struct
import subprocess
import sys
import zlib

import numpy
import tifffile
from PIL import Image

directory = ""


def path_of(name):
    return os.path.join(directory, name)


def expect(name, pixels):
    pixels = numpy.asarray(pixels).astype(numpy.uint8)
    if pixels.ndim == 2:
        pixels = numpy.repeat(pixels[:, :, None], 3, 2)
    with open(path_of(name + ".raw"), "wb") as file:
        file.write(b"%d %d 3\n" % (pixels.shape[1], pixels.shape[0]) + pixels[:, :, :3].tobytes())


def write(name, data, pixels):
    with open(path_of(name), "wb") as file:
        file.write(data)
    expect(name, pixels)


def save(name, image, pixels=None, **options):
    image.save(path_of(name), **options)
    expect(name, numpy.asarray(Image.open(path_of(name)).convert("RGB")) if pixels is None else pixels)


def tool(*arguments):
    subprocess.run(arguments, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


# Samples as 8 bits, as lade documents it.
def to_bytes(values, bits):
    return values >> (bits - 8) if bits >= 8 else values.astype(int) * 255 // ((1 << bits) - 1)


# Rows of samples of any number of bits, high bit first, each row ending with a byte.
def pack(rows, bits):
    if bits == 8:
        return rows.astype(numpy.uint8).tobytes()
    if bits == 16:
        return rows.astype("<u2").tobytes()
    shifts = numpy.arange(bits - 1, -1, -1)
    each = (rows[:, :, None] >> shifts & 1).reshape(rows.shape[0], -1).astype(numpy.uint8)
    return numpy.packbits(each, axis=1).tobytes()


# Literals of LZW, a code of `bits` + 1 bits each, low bit first, with a clear code so often that
# codes stay of one length.
def lzw(values, bits):
    codes = []
    for i, value in enumerate(values):
        if i % ((1 << bits) - 2) == 0:
            codes.append(1 << bits)
        codes.append(int(value))
    codes.append((1 << bits) + 1)
    number = sum(code << (i * (bits + 1)) for i, code in enumerate(codes))
    return number.to_bytes((len(codes) * (bits + 1) + 7) // 8, "little")


# --- TIFF -----------------------------------------------------------------------------------------

BITS, PHOTOMETRIC, SAMPLES, EXTRA, INKS, MAP = 258, 262, 277, 338, 332, 320


# A TIFF of one strip. `rows` are [height, width * samples], `data` how they are written.
def tiff(rows, width, bits, tags, data=None):
    samples = rows.shape[1] // width
    data = data or pack(rows, bits)
    fields = {256: width, 257: rows.shape[0], BITS: [bits] * samples, 259: 1, SAMPLES: samples, 278: rows.shape[0]}
    fields.update(tags)
    fields[273], fields[279] = 8, len(data)
    data += b"\0" * (len(data) % 2)
    entries, extra, at = b"", b"", 8 + len(data) + 2 + 12 * len(fields) + 4
    for tag in sorted(fields):
        values = fields[tag] if isinstance(fields[tag], list) else [fields[tag]]
        long = tag in (273, 279)
        body = struct.pack("<%d%s" % (len(values), "I" if long else "H"), *values)
        if len(body) > 4:
            body, extra = struct.pack("<I", at + len(extra)), extra + body
        entries += struct.pack("<HHI", tag, 4 if long else 3, len(values)) + body.ljust(4, b"\0")
    header = b"II*\0" + struct.pack("<I", 8 + len(data))
    return header + data + struct.pack("<H", len(fields)) + entries + b"\0" * 4 + extra


def tiff_copy(source, name, *options):
    tool("tiffcp", *options, path_of(source), path_of(name))
    shutil.copy(path_of(source + ".raw"), path_of(name + ".raw"))


def tiffs(rgb, alpha):
    height, width = alpha.shape
    grey = numpy.asarray(Image.fromarray(rgb).convert("L"))
    for bits in range(1, 17):
        values = (grey.astype(int) * 257) >> (16 - bits)
        write("grey%d.tif" % bits, tiff(values, width, bits, {PHOTOMETRIC: 1}), to_bytes(values, bits))
    for bits in (1, 4, 8, 16):
        values = (grey.astype(int) * 257) >> (16 - bits)
        write("white%d.tif" % bits, tiff(values, width, bits, {PHOTOMETRIC: 0}), 255 - to_bytes(values, bits))
    for bits in (2, 5, 8, 10, 16):
        values = ((rgb.astype(int) * 257) >> (16 - bits)).reshape(height, -1)
        write("rgb%d.tif" % bits, tiff(values, width, bits, {PHOTOMETRIC: 2}), to_bytes(values, bits).reshape(rgb.shape))
    for bits in (1, 4, 8):
        map = numpy.random.default_rng(bits).integers(0, 65536, (3, 1 << bits))
        values = grey.astype(int) >> (8 - bits)
        colours = (map >> 8).T[values]
        write("map%d.tif" % bits, tiff(values, width, bits, {PHOTOMETRIC: 3, MAP: map.ravel().tolist()}), colours)
    low = numpy.random.default_rng(0).integers(0, 256, (3, 256))
    write("lowmap.tif", tiff(grey, width, 8, {PHOTOMETRIC: 3, MAP: low.ravel().tolist()}), low.T[grey])
    rgba = numpy.dstack([rgb, alpha])
    grey_alpha = numpy.dstack([grey, alpha])
    write("alpha.tif", tiff(rgba.reshape(height, -1), width, 8, {PHOTOMETRIC: 2, EXTRA: 2}), rgb)
    write("unknown.tif", tiff(rgba.reshape(height, -1), width, 8, {PHOTOMETRIC: 2, EXTRA: 0}), rgb)
    write("greyalpha.tif", tiff(grey_alpha.reshape(height, -1), width, 8, {PHOTOMETRIC: 1, EXTRA: 2}), grey)
    divisor = numpy.maximum(alpha, 1)[:, :, None]
    premultiplied = rgb.astype(int) * alpha[:, :, None] // 255
    divided = numpy.minimum(premultiplied * 255 // divisor, 255) * (alpha > 0)[:, :, None]
    values = numpy.dstack([premultiplied, alpha]).reshape(height, -1)
    write("associated8.tif", tiff(values, width, 8, {PHOTOMETRIC: 2, EXTRA: 1}), divided)
    for bits in (4, 12, 16):
        most = (1 << bits) - 1
        draw = numpy.random.default_rng(bits)
        thin = draw.integers(0, most + 1, alpha.shape) >> draw.integers(0, bits, alpha.shape)
        colours = draw.integers(0, most + 1, rgb.shape) * thin[:, :, None] // most
        top = (1 << max(bits, 8)) - 1
        full = numpy.minimum(colours * top // numpy.maximum(thin, 1)[:, :, None], top) * (thin > 0)[:, :, None]
        values = numpy.dstack([colours, thin]).reshape(height, -1)
        write("associated%d.tif" % bits, tiff(values, width, bits, {PHOTOMETRIC: 2, EXTRA: 1}), to_bytes(full, max(bits, 8)))
    for bits in (8, 16):
        values = rgba.reshape(height, -1).astype(int) * (257 if bits == 16 else 1)
        inks = Image.frombytes("CMYK", (width, height), rgba.tobytes())
        write("inks%d.tif" % bits, tiff(values, width, bits, {PHOTOMETRIC: 5, INKS: 1}), inks.convert("RGB"))
    many = numpy.dstack([rgb, alpha, alpha, grey]).reshape(height, -1)
    write("many.tif", tiff(many, width, 8, {PHOTOMETRIC: 2, EXTRA: [0, 0, 0]}), rgb)

    before_tiff5 = lzw(grey.ravel(), 8)  # low bit first
    write("oldlzw.tif", tiff(grey, width, 8, {PHOTOMETRIC: 1, 259: 5}, before_tiff5), grey)

    for source in ("rgb8", "rgb16", "grey8", "grey16", "grey4", "map8", "alpha", "associated8", "inks8"):
        for way in ("none", "lzw", "zip", "packbits", "zstd", "lzma"):
            tiff_copy(source + ".tif", "%s-%s.tif" % (source, way), "-c", way, "-r", "7")
        tiff_copy(source + ".tif", source + "-tiles.tif", "-c", "zip", "-t", "-w", "16", "-l", "32")
        tiff_copy(source + ".tif", source + "-big.tif", "-8", "-B", "-c", "lzw")
        if source[-1] != "4":
            for way in ("lzw:2", "zip:2", "zstd:2"):
                tiff_copy(source + ".tif", "%s-%s.tif" % (source, way.replace(":", "")), "-c", way)
        if source in ("rgb8", "alpha", "associated8", "inks8"):  # tiffcp splits no others
            tiff_copy(source + ".tif", source + "-planes.tif", "-p", "separate", "-c", "lzw", "-r", "9")
            tiff_copy(source + ".tif", source + "-tiledplanes.tif", "-p", "separate", "-c", "none", "-t", "-w", "32", "-l", "16")
    for way in ("g3", "g4", "g3:2d", "lzw", "packbits"):
        tiff_copy("white1.tif", "white1-%s.tif" % way.replace(":", ""), "-c", way)
        tiff_copy("white1.tif", "white1-%s-lsb.tif" % way.replace(":", ""), "-c", way, "-f", "lsb2msb")
    for name, way in dict(ycc="jpeg", direct="jpeg:r:95").items():
        for layout in ((), ("-t", "-w", "32", "-l", "16"), ("-r", "16")):
            name += "t" if "-t" in layout else "r" if layout else ""
            tool("tiffcp", "-c", way, *layout, path_of("rgb8.tif"), path_of("jpeg-%s.tif" % name))
            expect("jpeg-%s.tif" % name, Image.open(path_of("jpeg-%s.tif" % name)).convert("RGB"))
    tool("tiffcp", "-c", "jpeg", path_of("grey8.tif"), path_of("jpeg-grey.tif"))
    expect("jpeg-grey.tif", Image.open(path_of("jpeg-grey.tif")))
    ycbcr = numpy.asarray(Image.fromarray(rgb[:36, :60]).convert("YCbCr"))
    write("ycbcr11.tif", tiff(ycbcr.reshape(36, -1), 60, 8, {PHOTOMETRIC: 6, 530: [1, 1]}), rgb)
    blocks = ycbcr.reshape(18, 2, 30, 2, 3).transpose(0, 2, 1, 3, 4).reshape(18, 30, 4, 3)
    units = numpy.dstack([blocks[..., 0], blocks[:, :, :1, 1], blocks[:, :, :1, 2]])
    data = tiff(units.reshape(36, -1), 30, 8, {PHOTOMETRIC: 6, 530: [2, 2], 256: 60, SAMPLES: 3, BITS: [8] * 3})
    write("ycbcr22.tif", data, rgb)
    tiff_copy("ycbcr11.tif", "ycbcr11-lzw.tif", "-c", "lzw")
    for name in ("ycbcr11.tif", "ycbcr11-lzw.tif", "ycbcr22.tif"):
        tool("tiff2rgba", "-c", "none", "-n", path_of(name), path_of("rgba"))
        expect(name, Image.open(path_of("rgba")))
    os.remove(path_of("rgba"))

    def tifffiles(name, data, pixels, **options):
        tifffile.imwrite(path_of(name), data, **options)
        expect(name, pixels)

    wide = rgb.astype(numpy.uint16) * 257
    tifffiles("tf-tiles.tif", rgb, rgb, photometric="rgb", tile=(32, 16))
    tifffiles("tf-planes.tif", numpy.moveaxis(rgb, 2, 0), rgb, photometric="rgb", planarconfig="separate")
    tifffiles("tf-wideplanes.tif", numpy.moveaxis(wide, 2, 0), rgb, photometric="rgb", planarconfig="separate")
    tifffiles("tf-big.tif", wide, rgb, photometric="rgb", bigtiff=True, byteorder=">", tile=(16, 16))
    tifffiles("tf-white.tif", grey, 255 - grey, photometric="miniswhite", rowsperstrip=5)
    tifffiles("tf-pages.tif", numpy.stack([rgb, rgb[::-1]]), rgb, photometric="rgb")
    for compression in ("raw", "tiff_lzw", "tiff_adobe_deflate", "packbits"):
        save("pil-%s.tif" % compression, Image.fromarray(rgb), compression=compression)


# --- PNG ------------------------------------------------------------------------------------------


def chunk(name, body):
    return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))


# A PNG of any kind, interlaced or not. `values` are [height, width, channels].
def png(values, bits, colour, interlaced, before=b""):
    height, width, channels = values.shape
    raw = bytearray()
    passes = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2))
    for left, top, step_x, step_y in passes if interlaced else ((0, 0, 1, 1),):
        part = values[top::step_y, left::step_x]
        if part.size:
            rows = part.reshape(part.shape[0], -1)
            rows = rows.astype(">u2") if bits == 16 else rows
            for row in rows:
                raw += b"\0" + (row.tobytes() if bits == 16 else pack(row[None], bits))
    header = struct.pack(">IIBBBBB", width, height, bits, colour, 0, 0, int(interlaced))
    body = chunk(b"IHDR", header) + before + chunk(b"IDAT", zlib.compress(raw)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + body


def pngs(rgb, alpha):
    grey = numpy.asarray(Image.fromarray(rgb).convert("L"))[:, :, None]
    for interlaced in (False, True):
        suffix = "-adam7.png" if interlaced else ".png"
        for bits in (1, 2, 4, 8, 16):
            values = (grey.astype(int) * 257) >> (16 - bits)
            write("grey%d%s" % (bits, suffix), png(values, bits, 0, interlaced), to_bytes(values, bits)[:, :, 0])
        for bits in (1, 2, 4, 8):
            colours = numpy.random.default_rng(bits).integers(0, 256, (1 << bits, 3)).astype(numpy.uint8)
            values = grey.astype(int) >> (8 - bits)
            plte = chunk(b"PLTE", colours.tobytes())
            trns = chunk(b"tRNS", b"\0\x80")
            write("map%d%s" % (bits, suffix), png(values, bits, 3, interlaced, plte), colours[values[:, :, 0]])
            write("maptrns%d%s" % (bits, suffix), png(values, bits, 3, interlaced, plte + trns), colours[values[:, :, 0]])
        for bits in (8, 16):
            factor = 257 if bits == 16 else 1
            a = alpha[:, :, None]
            for name, colour, values in (
                ("rgb", 2, rgb),
                ("rgba", 6, numpy.dstack([rgb, a])),
                ("ga", 4, numpy.dstack([grey, a])),
            ):
                expected = rgb if colour != 4 else grey[:, :, 0]
                write("%s%d%s" % (name, bits, suffix), png(values.astype(int) * factor, bits, colour, interlaced), expected)
            key = struct.pack(">HHH", *(rgb[3, 3].astype(int) * factor))
            trns = chunk(b"tRNS", key)
            write("key%d%s" % (bits, suffix), png(rgb.astype(int) * factor, bits, 2, interlaced, trns), rgb)
            trns = chunk(b"tRNS", key[:2])
            write("greykey%d%s" % (bits, suffix), png(grey.astype(int) * factor, bits, 0, interlaced, trns), grey[:, :, 0])
        for shape in ((1, 1), (1, 9), (9, 1), (2, 2), (3, 1)):
            part = rgb[: shape[0], : shape[1]]
            write("tiny%dx%d%s" % (*shape, suffix), png(part, 8, 2, interlaced), part)
    for level in (0, 9):
        save("pil-%d.png" % level, Image.fromarray(rgb), rgb, compress_level=level)
    filled = numpy.full_like(rgb, 0x5A)
    save("filled.png", Image.fromarray(filled), filled)


# --- GIF ------------------------------------------------------------------------------------------


# A GIF of one image.
def gif(indices, colours, screen=None, at=(0, 0), transparent=None, interlaced=False, own_palette=False):
    height, width = indices.shape
    depth = max(1, (len(colours) - 1).bit_length())
    table = colours.tobytes().ljust(3 << depth, b"\0")
    screen = screen or (width, height)
    flags = 0x80 | (depth - 1)
    data = b"GIF89a" + struct.pack("<HHBBB", *screen, 0 if own_palette else flags, 0, 0)
    data += b"" if own_palette else table
    if transparent is not None:
        data += struct.pack("<BBBBHBB", 0x21, 0xF9, 4, 1, 0, transparent, 0)
    rows = list(range(height))
    if interlaced:
        rows = rows[0::8] + rows[4::8] + rows[2::4] + rows[1::2]
    bits = max(2, depth)
    packed = lzw(indices[rows].ravel(), bits)
    flags = (0x80 | (depth - 1) if own_palette else 0) | (0x40 if interlaced else 0)
    data += struct.pack("<BHHHHB", 0x2C, *at, width, height, flags)
    data += (table if own_palette else b"") + bytes([bits])
    for i in range(0, len(packed), 255):
        data += bytes([len(packed[i : i + 255])]) + packed[i : i + 255]
    return data + b"\0;"


def gifs(rgb):
    grey = numpy.asarray(Image.fromarray(rgb).convert("L")).astype(int)
    height, width = grey.shape
    for bits in (1, 2, 3, 5, 8):
        colours = numpy.random.default_rng(bits).integers(0, 256, (1 << bits, 3)).astype(numpy.uint8)
        indices = grey >> (8 - bits)
        pixels = colours[indices]
        for interlaced in (False, True):
            for own in (False, True):
                name = "map%d%s%s.gif" % (bits, "-interlaced" * interlaced, "-own" * own)
                write(name, gif(indices, colours, interlaced=interlaced, own_palette=own), pixels)
        write("transparent%d.gif" % bits, gif(indices, colours, transparent=1), pixels)
        write("larger%d.gif" % bits, gif(indices, colours, screen=(20, 10)), pixels)
        moved = numpy.repeat(colours[:1], (height + 9) * (width + 5), 0).reshape(height + 9, width + 5, 3)
        moved[9:, 5:] = pixels
        write("moved%d.gif" % bits, gif(indices, colours, screen=(20, 10), at=(5, 9)), moved)
        framed = numpy.repeat(colours[1:2], (height + 30) * (width + 20), 0).reshape(height + 30, width + 20, 3)
        framed[9 : 9 + height, 5 : 5 + width] = pixels
        screen = (width + 20, height + 30)
        write("framed%d.gif" % bits, gif(indices, colours, screen=screen, at=(5, 9), transparent=1), framed)
    image = Image.fromarray(rgb)
    palette = image.quantize(200)
    save("pil.gif", palette)
    save("pil-plain.gif", palette, interlace=0)
    save("pil-grey.gif", image.convert("L"))
    save("pil-two.gif", palette, save_all=True, append_images=[palette.rotate(90)])
    save("pil-transparent.gif", palette, transparency=7)
    large = image.resize((300, 200)).quantize(256)
    save("pil-large.gif", large)
    noise = numpy.random.default_rng(9).integers(0, 256, (90, 120)).astype(numpy.uint8)
    save("pil-noise.gif", Image.fromarray(noise), numpy.repeat(noise[:, :, None], 3, 2))


# --- BMP ------------------------------------------------------------------------------------------


def bmp(rows, width, height, bits, palette=b"", compression=0, header=40, masks=b"", used=0):
    if header == 12:
        info = struct.pack("<IHHHH", 12, width, height, 1, bits)
    else:
        info = struct.pack("<IiiHHIIiiII", header, width, height, 1, bits, compression, len(rows), 0, 0, used, 0)
        info += masks if header > 40 else b""
        info = info.ljust(header, b"\0")
        info += masks if header == 40 else b""
    offset = 14 + len(info) + len(palette)
    return b"BM" + struct.pack("<IHHI", offset + len(rows), 0, 0, offset) + info + palette + rows


def bmp_rows(rows, bits):
    data = [pack(row[None], bits) if bits <= 8 else row.tobytes() for row in rows]
    return b"".join(row.ljust((len(row) + 3) // 4 * 4, b"\0") for row in data)


# Run lengths of indices: runs, indices as they are, a skipped row, and a step.
def bmp_runs(indices, bits):
    data = b""
    for y, row in enumerate(indices):
        if y == 5:
            data += bytes([0, 2, 0, 1])  # from the beginning of row 5 to that of row 6
            continue
        at = 0
        while at < len(row):
            count = 1
            while at + count < len(row) and count < 255 and row[at + count] == row[at]:
                count += 1
            if count > 1 or len(row) - at < 3:
                data += bytes([count, row[at] * 17 if bits == 4 else row[at]])
                at += count
                continue
            part = row[at : at + min(9, len(row) - at)]
            body = pack(numpy.array([part]), bits)
            data += bytes([0, len(part)]) + body + b"\0" * (len(body) % 2)
            at += len(part)
        if y != 4:
            data += b"\0\0"
        else:
            data += b"\0\0"
    return data + b"\0\1"


def bmps(rgb, alpha):
    height, width = alpha.shape
    grey = numpy.asarray(Image.fromarray(rgb).convert("L")).astype(int)
    up = slice(None, None, -1)
    bgr = rgb[:, :, ::-1]
    for bits in (1, 2, 4, 8):
        colours = numpy.random.default_rng(bits).integers(0, 256, (1 << bits, 3)).astype(numpy.uint8)
        indices = grey >> (8 - bits)
        pixels = colours[indices]
        three = colours[:, ::-1].tobytes()
        four = numpy.hstack([colours[:, ::-1], colours[:, :1]]).tobytes()
        rows = bmp_rows(indices[up], bits)
        write("map%d.bmp" % bits, bmp(rows, width, height, bits, four), pixels)
        write("old%d.bmp" % bits, bmp(rows, width, height, bits, three, header=12), pixels)
        write("down%d.bmp" % bits, bmp(bmp_rows(indices, bits), width, -height, bits, four), pixels)
        write("v5map%d.bmp" % bits, bmp(rows, width, height, bits, four, header=124), pixels)
        if bits in (4, 8):
            smooth = numpy.where(numpy.arange(width) % 20 < 9, indices[:, :1], indices)
            skipped = smooth.copy()
            skipped[up][5] = 0
            kind = 2 if bits == 4 else 1
            write("runs%d.bmp" % bits, bmp(bmp_runs(smooth[up], bits), width, height, bits, four, kind), colours[skipped])
    few = numpy.arange(48).reshape(16, 3).astype(numpy.uint8)
    few4 = numpy.hstack([few[:, ::-1], few[:, :1]]).tobytes()
    write("few.bmp", bmp(bmp_rows((grey % 16)[up], 8), width, height, 8, few4, used=16), few[grey % 16])
    write("rgb24.bmp", bmp(bmp_rows(bgr[up], 24), width, height, 24), rgb)
    write("down24.bmp", bmp(bmp_rows(bgr, 24), width, -height, 24), rgb)
    write("old24.bmp", bmp(bmp_rows(bgr[up], 24), width, height, 24, header=12), rgb)
    bgra = numpy.dstack([bgr, alpha])
    write("rgb32.bmp", bmp(bgra[up].tobytes(), width, height, 32), rgb)
    clear = numpy.dstack([bgr, alpha * 0])
    write("clear32.bmp", bmp(clear[up].tobytes(), width, height, 32), rgb)

    # Pixels of any masks: red, green, blue and alpha.
    def masked(name, bits, masks, header):
        values = numpy.zeros((height, width), numpy.int64)
        expected = []
        for c, mask in enumerate(masks):
            if mask == 0:
                continue
            shift = (mask & -mask).bit_length() - 1
            depth = (mask >> shift).bit_length()
            samples = (numpy.dstack([rgb, alpha])[:, :, c].astype(int) * 257) >> (16 - depth)
            values |= samples << shift
            expected.append(to_bytes(samples, depth))
        rows = bmp_rows(values[up].astype("<u%d" % (bits // 8)), bits)
        packed = struct.pack("<IIII", *masks)
        packed = packed[:12] if header in (40, 52) else packed
        write(name, bmp(rows, width, height, bits, compression=3, header=header, masks=packed), numpy.dstack(expected[:3]))

    masked("565.bmp", 16, (0xF800, 0x7E0, 0x1F, 0), 40)
    masked("555.bmp", 16, (0x7C00, 0x3E0, 0x1F, 0), 40)
    masked("4444.bmp", 16, (0xF00, 0xF0, 0xF, 0xF000), 108)
    masked("bgra-v4.bmp", 32, (0xFF0000, 0xFF00, 0xFF, 0xFF000000), 108)
    masked("rgba-v5.bmp", 32, (0xFF, 0xFF00, 0xFF0000, 0xFF000000), 124)
    masked("abgr-v4.bmp", 32, (0xFF000000, 0xFF0000, 0xFF00, 0xFF), 108)
    masked("argb-v3.bmp", 32, (0xFF0000, 0xFF00, 0xFF, 0xFF000000), 56)
    masked("x10.bmp", 32, (0x3FF00000, 0xFFC00, 0x3FF, 0), 40)
    masked("odd.bmp", 32, (0x7E0, 0xF8000000, 0x1FE0000, 0), 52)
    values = (rgb.astype(int) >> 3) @ numpy.array([1 << 10, 1 << 5, 1])
    write("plain16.bmp", bmp(bmp_rows(values[up].astype("<u2"), 16), width, height, 16), (rgb >> 3).astype(int) * 255 // 31)
    image = Image.fromarray(rgb)
    for name, kind in dict(rgb=image, grey=image.convert("L"), map=image.quantize(99), bits=image.convert("1")).items():
        save("pil-%s.bmp" % name, kind)
    for name, options in dict(runs=("-compress", "RLE"), v3=(), v4=()).items():
        kind = "BMP3" if name == "v3" else "BMP"
        source = path_of("map8.bmp")
        tool("/usr/bin/convert", source, *options, kind + ":" + path_of("magick-%s.bmp" % name))
        shutil.copy(path_of("map8.bmp.raw"), path_of("magick-%s.bmp.raw" % name))


# --- JPEG -----------------------------------------------------------------------------------------


def jpegs(rgb):
    image = Image.fromarray(rgb)
    grey, inks = image.convert("L"), image.convert("CMYK")
    for quality in (5, 60, 100):
        for kind, options in dict(base={}, optimised={"optimize": True}, progressive={"progressive": True}).items():
            name = "%s-%d" % (kind, quality)
            for sampling in ("4:4:4", "4:2:2", "4:2:0"):
                save("%s-%s.jpg" % (name, sampling.replace(":", "")), image, quality=quality, subsampling=sampling, **options)
            save(name + "-grey.jpg", grey, quality=quality, **options)
            save(name + "-inks.jpg", inks, quality=quality, **options)
    for width, height in ((1, 1), (1, 9), (9, 1), (8, 8), (16, 16), (17, 33)):
        save("size%dx%d.jpg" % (width, height), image.crop((0, 0, width, height)), quality=90)

    image.save(path_of("source.ppm"))
    grey.save(path_of("source.pgm"))
    for name, options in {
        "440": ("-sample", "1x2"),
        "411": ("-sample", "4x1"),
        "410": ("-sample", "4x2"),
        "luma-small": ("-sample", "1x1,2x2,2x2"),
        "one-chroma": ("-sample", "2x2,2x1,1x2"),
        "direct": ("-rgb",),
        "restart": ("-restart", "1"),
        "restart-blocks": ("-restart", "3B", "-sample", "1x1"),
        "arithmetic": ("-arithmetic",),
        "arithmetic-progressive": ("-arithmetic", "-progressive"),
        "progressive-restart": ("-progressive", "-restart", "1"),
        "quantised": ("-quality", "90,20"),
        "smoothed": ("-smooth", "50", "-progressive"),
    }.items():
        for source in ("source.ppm",) if name in ("direct", "luma-small", "one-chroma") else ("source.ppm", "source.pgm"):
            file = "cjpeg-%s%s.jpg" % (name, "-grey" * (source == "source.pgm"))
            options = ("-sample", "1x1") if source == "source.pgm" and "-sample" in options else options
            tool("cjpeg", *options, "-outfile", path_of(file), path_of(source))
            expect(file, Image.open(path_of(file)).convert("RGB"))
    os.remove(path_of("source.ppm"))
    os.remove(path_of("source.pgm"))


# --- what ImageMagick writes ----------------------------------------------------------------------


def magick(name, source, *options, pixels=None, kind=""):
    source = ("png:" + path_of(source + ".source"), "+dither")  # or else it changes even few colours
    tool("/usr/bin/convert", *source, *options, kind + path_of("magick-" + name))
    expect("magick-" + name, Image.open(path_of("magick-" + name)).convert("RGB") if pixels is None else pixels)


def magick_tiffs(rgb, grey, bits, few):
    for way in ("None", "LZW", "Zip", "RLE", "LZMA", "Zstd"):
        magick(way.lower() + ".tif", "rgb", "-compress", way, pixels=rgb)
    for way in ("Fax", "Group4", "LZW"):
        magick("bits-%s.tif" % way.lower(), "bits", "-compress", way, pixels=bits)
        magick("lsb-%s.tif" % way.lower(), "bits", "-compress", way, "-define", "tiff:fill-order=lsb", pixels=bits)
    for way in ("None", "LZW"):
        msb = ("-compress", way, "-define", "tiff:endian=msb")
        magick("msb8-%s.tif" % way.lower(), "rgb", *msb, pixels=rgb)
        magick("msb16-%s.tif" % way.lower(), "rgb", *msb, "-depth", "16", pixels=rgb)
        magick("msb-big-%s.tif" % way.lower(), "rgb", *msb, "-depth", "16", pixels=rgb, kind="tiff64:")
    magick("tiles.tif", "rgb", "-compress", "Zip", "-define", "tiff:tile-geometry=32x16", pixels=rgb)
    magick("rows.tif", "grey", "-compress", "LZW", "-define", "tiff:rows-per-strip=5", pixels=grey)
    magick("planes.tif", "rgb", "-compress", "LZW", "-interlace", "Plane", pixels=rgb)
    magick("palette.tif", "few", "-compress", "Zip", "-type", "Palette", pixels=few)
    magick("pages.tif", "rgb", "-compress", "LZW", "(", "+clone", "-rotate", "90", ")", pixels=rgb)
    magick("alpha.tif", "rgba", "-compress", "LZW", pixels=rgb)
    magick("inks.tif", "rgb", "-compress", "LZW", "-colorspace", "CMYK")
    magick("jpeg.tif", "rgb", "-compress", "JPEG")
    magick("associated.tif", "rgba", "-compress", "Zip", "-define", "tiff:alpha=associated")
    stored = tifffile.imread(path_of("magick-associated.tif")).astype(int)
    divided = numpy.minimum(stored[:, :, :3] * 255 // numpy.maximum(stored[:, :, 3:], 1), 255)
    expect("magick-associated.tif", divided * (stored[:, :, 3:] > 0))


def magick_others(rgb, grey, bits, few):
    for name, interlace in dict(rows="None", adam7="PNG").items():
        for kind, source, pixels in (
            ("png00", "rgba", rgb),
            ("png8", "few", few),
            ("png24", "rgb", rgb),
            ("png32", "rgba", rgb),
            ("png48", "rgb", rgb),
            ("png64", "rgba", rgb),
            ("png00", "grey", grey),
            ("png00", "bits", bits),
        ):
            magick("%s-%s-%s.png" % (kind, source, name), source, "-interlace", interlace, pixels=pixels, kind=kind + ":")
    for name, interlace in dict(rows="None", interlaced="GIF").items():
        magick(name + ".gif", "few", "-interlace", interlace, pixels=few)
        magick("bits-%s.gif" % name, "bits", "-interlace", interlace, pixels=bits)
    frames = ("(", "+clone", "-rotate", "180", ")", "(", "-clone", "0", "-crop", "20x10+5+7", ")")
    magick("frames.gif", "few", *frames, pixels=few)
    magick("transparent.gif", "rgba")
    magick("transparent-frames.gif", "rgba", *frames)
    for sampling in ("4:4:4", "4:2:2", "4:2:0", "4:1:1", "4:4:0"):
        for name, interlace in dict(base="None", progressive="JPEG").items():
            options = ("-sampling-factor", sampling, "-interlace", interlace, "-quality", "80")
            magick("%s-%s.jpg" % (name, sampling.replace(":", "")), "rgb", *options)
    for name, interlace in dict(base="None", progressive="JPEG").items():
        magick(name + "-grey.jpg", "grey", "-interlace", interlace)
        magick(name + "-inks.jpg", "rgb", "-colorspace", "CMYK", "-interlace", interlace)


def magicks(rgb, alpha):
    image = Image.fromarray(rgb)
    few = numpy.asarray(image.quantize(99).convert("RGB"))
    grey = numpy.asarray(image.convert("L"))
    bits = (grey >> 7) * 255
    sources = dict(rgb=rgb, rgba=numpy.dstack([rgb, alpha]), grey=grey, bits=bits, few=few)
    for name, pixels in sources.items():
        Image.fromarray(pixels).save(path_of(name + ".source"), "png")
    magick_tiffs(rgb, grey, bits, few)
    magick_others(rgb, grey, bits, few)
    for name in sources:
        os.remove(path_of(name + ".source"))


# --- the rest -------------------------------------------------------------------------------------


def pnms(rgb):
    grey = numpy.asarray(Image.fromarray(rgb).convert("L")).astype(int)
    height, width = grey.shape
    for most in (1, 100, 255, 1000, 65535):
        for kind, values in ((b"P5", grey), (b"P6", rgb.astype(int))):
            samples = values * most // 255
            data = samples.astype(numpy.uint8 if most < 256 else ">u2").tobytes()
            scaled = samples >> 8 if most == 65535 else (samples * 255 + most // 2) // most
            header = b"%s\n# a comment\n%d %d\n%d\n" % (kind, width, height, most)
            write("%d.p%sm" % (most, "g" if kind == b"P5" else "p"), header + data, scaled)
    bits = grey < 128
    write("bits.pbm", b"P4 %d %d\n" % (width, height) + pack(bits.astype(int), 1), (1 - bits) * 255)


def webps(rgb, alpha):
    image = Image.fromarray(rgb)
    rgba = numpy.dstack([rgb, alpha])
    with_alpha = Image.fromarray(rgba)
    save("lossless.webp", image, rgb, lossless=True)
    save("alpha.webp", with_alpha, rgb, lossless=True, exact=True)
    for name, options in dict(q80={"quality": 80}, q5={"quality": 5}).items():
        save("lossy-%s.webp" % name, image, **options)
        save("lossy-alpha-%s.webp" % name, with_alpha, exact=True, **options)
    save("even.webp", image.resize((60, 36)), quality=30)
    save("thin.webp", image.resize((1, 9)), quality=90)
    save("two.webp", image, rgb, save_all=True, append_images=[image.rotate(180)], lossless=True)
    tool("webpmux", "-frame", path_of("lossless.webp"), "+100", "-o", path_of("one.webp"))
    expect("one.webp", rgb)
    small = image.resize((20, 12))
    small.save(path_of("part"), "webp", lossless=True)
    part = ("-frame", path_of("part"), "+100+10+20+0+b", "-frame", path_of("lossless.webp"), "+100")
    tool("webpmux", *part, "-o", path_of("moved.webp"))
    os.remove(path_of("part"))
    moved = numpy.zeros_like(rgb)
    moved[20:32, 10:30] = numpy.asarray(small)
    expect("moved.webp", moved)


def avifs(rgb, alpha):
    height, width, _ = rgb.shape
    rgba = numpy.dstack([rgb, alpha])
    grey = numpy.asarray(Image.fromarray(rgb).convert("L"))
    cells = numpy.asarray(Image.fromarray(rgb).resize((128, 192)))  # of at least 64 x 64
    for name, pixels in dict(rgb=rgb, rgba=rgba, grey=grey, cells=cells).items():
        Image.fromarray(pixels).save(path_of(name + ".source"), "png")

    def encode(name, source, *options, pixels=None):
        shutil.copy(path_of(source + ".source"), path_of("source.png"))
        tool("avifenc", "-s", "10", *options, path_of("source.png"), path_of(name))
        if pixels is None:
            tool("avifdec", "-d", "8", path_of(name), path_of("source.png"))
            pixels = Image.open(path_of("source.png")).convert("RGB")
        expect(name, pixels)

    encode("lossless.avif", "rgb", "-l", pixels=rgb)
    encode("alpha.avif", "rgba", "-l", pixels=rgb)
    encode("grey.avif", "grey", "-y", "400", "--min", "0", "--max", "0", pixels=grey)
    for depth in ("8", "10", "12"):
        for yuv in ("420", "422", "444"):
            encode("lossy-%s-%s.avif" % (depth, yuv), "rgb", "-d", depth, "-y", yuv, "--min", "10", "--max", "20")
    encode("limited.avif", "rgb", "-r", "limited", "--min", "5", "--max", "9")
    encode("premultiplied.avif", "rgba", "-p", "--min", "0", "--max", "0")
    encode("part.avif", "rgb", "-l", "--crop", "4,6,31,20", pixels=rgb[6:26, 4:35])
    for angle in range(4):
        turned = numpy.rot90(rgb, angle)
        encode("irot%d.avif" % angle, "rgb", "-l", "--irot", str(angle), pixels=turned)
        encode("irot%d-down.avif" % angle, "rgb", "-l", "--irot", str(angle), "--imir", "0", pixels=turned[::-1])
        encode("irot%d-right.avif" % angle, "rgb", "-l", "--irot", str(angle), "--imir", "1", pixels=turned[:, ::-1])
    encode("grid.avif", "cells", "-l", "--grid", "2x3", pixels=cells)
    encode("grid-420.avif", "cells", "-y", "420", "--min", "10", "--max", "20", "--grid", "2x2")
    tiled = Image.fromarray(rgba).resize((128, 192))
    tiled.save(path_of("tiled.source"), "png")
    encode("grid-alpha.avif", "tiled", "-l", "--grid", "2x3", pixels=numpy.asarray(tiled))
    for name, source in dict(sequence="rgb", alphas="rgba").items():
        shutil.copy(path_of(source + ".source"), path_of("first.png"))
        first = numpy.asarray(Image.open(path_of("first.png")))
        Image.fromarray(first[::-1]).save(path_of("source.png"))
        tool("avifenc", "-s", "10", "-l", path_of("first.png"), path_of("source.png"), path_of(name + ".avif"))
        expect(name + ".avif", first)
    sources = ("rgb.source", "rgba.source", "grey.source", "cells.source", "tiled.source", "source.png", "first.png")
    for name in sources:
        os.remove(path_of(name))


# --- large images ---------------------------------------------------------------------------------


def put(name, data):
    with open(path_of(name), "wb") as file:
        file.write(data)


def large_tiffs(rgb, alpha):
    height, width = alpha.shape
    rgba = numpy.dstack([rgb, alpha])
    rows = {1: alpha, 3: rgb.reshape(height, -1), 4: rgba.reshape(height, -1)}
    map = numpy.repeat(numpy.arange(256)[None] * 257, 3, 0).ravel().tolist()
    for name, samples, bits, tags in (
        ("grey8", 1, 8, {PHOTOMETRIC: 1}),
        ("grey1", 1, 1, {PHOTOMETRIC: 1}),
        ("rgb8", 3, 8, {PHOTOMETRIC: 2}),
        ("rgba16", 4, 16, {PHOTOMETRIC: 2, EXTRA: 2}),
        ("inks16", 4, 16, {PHOTOMETRIC: 5, INKS: 1}),
        ("map8", 1, 8, {PHOTOMETRIC: 3, MAP: map}),
        ("ycbcr", 3, 8, {PHOTOMETRIC: 6, 530: [1, 1]}),
    ):
        values = rows[samples].astype(int)
        values = values * 257 if bits == 16 else values >> (8 - bits)
        put(name + ".tif", tiff(values, width, bits, tags))
    for name, source, options in (
        ("lzw", "rgb8", ("-c", "lzw", "-r", "1500")),
        ("rows", "rgba16", ("-c", "zip", "-r", "7")),
        ("tiles", "rgba16", ("-c", "zip", "-t", "-w", "2048", "-l", "2048")),
        ("planes", "rgb8", ("-c", "packbits", "-p", "separate", "-r", "1500")),
        ("big", "rgba16", ("-8", "-B", "-c", "none", "-r", "1500")),
        ("turned-bits", "rgb8", ("-c", "none", "-f", "lsb2msb", "-r", "1500")),
        ("jpeg", "rgb8", ("-c", "jpeg", "-r", "1500")),
    ):
        tool("tiffcp", *options, path_of(source + ".tif"), path_of(name + ".tif"))


def large_pngs(rgb, alpha):
    grey, a = alpha[:, :, None], alpha[:, :, None]
    plte = chunk(b"PLTE", bytes(range(256)) * 3)
    for name, bits, colour, values, before in (
        ("grey1", 1, 0, grey >> 7, b""),
        ("grey16", 16, 0, grey.astype(int) * 257, b""),
        ("greykey", 8, 0, grey, chunk(b"tRNS", b"\0\1")),
        ("ga8", 8, 4, numpy.dstack([grey, a]), b""),
        ("rgb8", 8, 2, rgb, b""),
        ("key8", 8, 2, rgb, chunk(b"tRNS", b"\0\1" * 3)),
        ("key16", 16, 2, rgb.astype(int) * 257, chunk(b"tRNS", b"\0\1" * 3)),
        ("map8", 8, 3, grey, plte + chunk(b"tRNS", b"\0")),
        ("rgba8", 8, 6, numpy.dstack([rgb, a]), b""),
        ("rgba16", 16, 6, numpy.dstack([rgb, a]).astype(int) * 257, b""),
    ):
        put(name + ".png", png(values, bits, colour, name == "rgba8", before))
    noise = numpy.random.default_rng(1).integers(0, 256, rgb.shape).astype(numpy.uint8)
    put("noise.png", png(noise, 8, 2, False))
    put("filled.png", png(numpy.full_like(rgb, 0x5A), 8, 2, False))


def large_bmps(grey, rgb):
    height, width = grey.shape
    grey4 = numpy.repeat(numpy.arange(256, dtype=numpy.uint8)[:, None], 4, 1).tobytes()
    put("rgb24.bmp", bmp(bmp_rows(rgb, 24), width, height, 24))
    put("old24.bmp", bmp(bmp_rows(rgb, 24), width, height, 24, header=12))
    put("map8.bmp", bmp(bmp_rows(grey, 8), width, height, 8, grey4))
    runs = b"".join(bytes([200, y % 256]) * (width // 200) + b"\0\0" for y in range(height))
    put("runs8.bmp", bmp(runs + b"\0\1", width, height, 8, grey4, 1))


def large_rest(image, with_alpha):
    grey = image.convert("L")
    for name, of, options in (
        ("baseline.jpg", image, {}),
        ("progressive.jpg", image, {"progressive": True}),
        ("grey.jpg", grey, {"progressive": True}),
        ("inks.jpg", image.convert("CMYK"), {"progressive": True}),
        ("turned.jpg", image, {"exif": b"Exif\0\0II*\0\x08\0\0\0\1\0\x12\1\3\0\1\0\0\0\6\0\0\0\0\0\0\0"}),
        ("lossy.webp", image, {"method": 0}),
        ("lossy-profile.webp", image, {"method": 0, "icc_profile": b"a profile"}),
        ("lossy-alpha.webp", with_alpha, {"method": 0, "exact": True}),
        ("lossless.webp", image, {"lossless": True, "method": 0, "quality": 0}),
        ("lossless-alpha.webp", with_alpha, {"lossless": True, "method": 0, "quality": 0, "exact": True}),
        ("two.webp", image, {"lossless": True, "method": 0, "save_all": True, "append_images": [grey]}),
        ("map.gif", grey.convert("P"), {}),
        ("rgb.ppm", image, {}),
        ("grey.pgm", grey, {}),
        ("bits.pbm", image.convert("1"), {}),
    ):
        of.save(path_of(name), **options)
    with open(path_of("map.gif"), "rb") as file:
        data = file.read()
    put("screen.gif", data[:6] + struct.pack("<HH", 20, 10) + data[10:])
    put("comment.ppm", b"P6\n# a comment\n%d %d\n1000\n" % image.size + bytes(6 * image.width * image.height))
    with_alpha.save(path_of("source.png"), compress_level=1)
    image.save(path_of("rgb.png"), compress_level=1)
    for name, source, options in (
        ("420", "rgb", ("-d", "8", "-y", "420")),
        ("444", "rgb", ("-d", "12", "-y", "444")),
        ("alpha", "source", ("-d", "8", "-y", "420")),
        ("alpha444", "source", ("-d", "12", "-y", "444")),
        ("turned", "rgb", ("-d", "8", "-y", "420", "--irot", "1")),
    ):
        tool("avifenc", "-s", "10", *options, path_of(source + ".png"), path_of(name + ".avif"))


def large(into):
    global directory
    directory = into
    size = (2000, 1500)
    grey = Image.linear_gradient("L").resize(size)
    rgb = Image.merge("RGB", (grey, Image.radial_gradient("L").resize(size), grey.rotate(180)))
    alpha = numpy.asarray(grey.rotate(180))
    large_tiffs(numpy.asarray(rgb), alpha)
    large_pngs(numpy.asarray(rgb), alpha)
    large_bmps(alpha, numpy.asarray(rgb))
    large_rest(rgb, Image.merge("RGBA", (*rgb.split(), Image.fromarray(alpha))))


def main(photo, into):
    global directory
    directory = into
    image = Image.open(photo).convert("RGB").resize((61, 37))
    rgb = numpy.asarray(image)
    alpha = numpy.asarray(image.convert("L").rotate(180)).copy()
    alpha[:4] = 0
    alpha[4:9] = 255
    jpegs(rgb)
    tiffs(rgb, alpha)
    pngs(rgb, alpha)
    gifs(rgb)
    bmps(rgb, alpha)
    pnms(rgb)
    magicks(rgb, alpha)
    webps(rgb, alpha)
    avifs(rgb, alpha)


if __name__ == "__main__":
    large(sys.argv[2]) if sys.argv[1] == "--large" else main(*sys.argv[1:])
