"""What Pillow makes of images, for comparison: one command per behaviour, raw pixels on stdout.

Every image is printed as a line "<width> <height> <channels>" followed by its bytes.
"""

import os
import struct
import sys
import zlib

from PIL import Image, ImageOps


def put(image):
    channels = len(image.getbands())
    sys.stdout.buffer.write(b"%d %d %d\n" % (*image.size, channels))
    sys.stdout.buffer.write(image.tobytes())


# Pillow clips 16-bit grey to 255; everyone else keeps the upper half.
def convert(image, mode):
    if image.mode in ("I", "I;16"):
        size = 4 if image.mode == "I" else 2
        image = Image.frombytes("L", image.size, image.tobytes()[1::size])
    return image.convert(mode)


def decode(mode, *files):
    for file in files:
        put(convert(Image.open(file), mode))


# Pillow turns TIFFs when it loads them, and would do so twice.
def orient(*files):
    for file in files:
        image = Image.open(file)
        if image.format != "TIFF":
            image = ImageOps.exif_transpose(image)
        put(image.convert("RGB"))


def resize(file, width, height, left, top, right, bottom):
    image = Image.open(file).convert("RGB")
    box = (float(left), float(top), float(right), float(bottom))
    put(image.resize((int(width), int(height)), Image.BILINEAR, box))


# torchvision's Resize(shorter) and CenterCrop(size).
def centre_crop(shorter, size, *files):
    shorter, size = int(shorter), int(size)
    for file in files:
        image = Image.open(file).convert("RGB")
        width, height = image.size
        if width <= height:
            new = (shorter, int(shorter * height / width))
        else:
            new = (int(shorter * width / height), shorter)
        image = image.resize(new, Image.BILINEAR)
        left = int(round((new[0] - size) / 2.0))
        top = int(round((new[1] - size) / 2.0))
        put(image.crop((left, top, left + size, top + size)))


# torchvision's crop, resize and flip, for a box that is known.
def cut_resize(file, width, height, left, top, right, bottom, flip):
    image = Image.open(file).convert("RGB").crop((int(left), int(top), int(right), int(bottom)))
    image = image.resize((int(width), int(height)), Image.BILINEAR)
    put(ImageOps.mirror(image) if flip == "1" else image)


# A PNG of kinds that Pillow does not write: 16 bits, or Adam7.
def write_png(path, image, depth, interlaced):
    width, height = image.size
    channels = len(image.getbands())
    colour = {1: 0, 2: 4, 3: 2, 4: 6}[channels]
    data = image.tobytes()

    def pixel(x, y):
        at = (y * width + x) * channels
        values = data[at : at + channels]
        return values if depth == 8 else b"".join(bytes((v, 255 - v)) for v in values)

    adam7 = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2))
    raw = b""
    for left, top, step_x, step_y in adam7 if interlaced else ((0, 0, 1, 1),):
        if left < width:
            for y in range(top, height, step_y):
                raw += b"\0" + b"".join(pixel(x, y) for x in range(left, width, step_x))

    def chunk(name, body):
        return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))

    header = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, interlaced)
    with open(path, "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header))
        file.write(chunk(b"IDAT", zlib.compress(raw)) + chunk(b"IEND", b""))


# Images of every format that decodes to the same pixels everywhere, from one photo.
def make_lossless(photo, directory):
    rgb = Image.open(photo).convert("RGB").resize((61, 37))
    alpha = rgb.convert("L").rotate(180)
    rgba = rgb.copy()
    rgba.putalpha(alpha)
    grey = rgb.convert("L")
    grey_alpha = Image.merge("LA", (grey, alpha))
    palette = rgb.quantize(200)
    few = rgb.quantize(13)
    bits = rgb.convert("1")
    deep = Image.frombytes("I;16", grey.size, b"".join(bytes((255 - v, v)) for v in grey.tobytes()))

    def save(name, image, **options):
        image.save(os.path.join(directory, name), **options)

    for name, image in dict(rgb=rgb, rgba=rgba, grey=grey, ga=grey_alpha, pal=palette, bits=bits, deep=deep).items():
        save(name + ".png", image)
    save("pal4.png", few, bits=4)
    save("trans.png", palette, transparency=3)
    write_png(os.path.join(directory, "rgb48.png"), rgb, 16, 0)
    write_png(os.path.join(directory, "rgba64.png"), rgba, 16, 0)
    write_png(os.path.join(directory, "ga16.png"), grey_alpha, 16, 0)
    write_png(os.path.join(directory, "adam7.png"), rgb, 8, 1)
    save("one.gif", palette)
    save("two.gif", palette, save_all=True, append_images=[few.rotate(90)])
    for name, image in dict(rgb=rgb, grey=grey, pal=palette, bits=bits).items():
        save(name + ".bmp", image)
    save("rgb.webp", rgb, lossless=True)
    save("rgba.webp", rgba, lossless=True, exact=True)
    save("lossy.webp", rgb, quality=80)
    save("even.webp", rgb.resize((60, 36)), quality=30)
    save("thin.webp", rgb.resize((1, 9)), quality=90)
    save("alpha.webp", rgba, quality=80, exact=True)
    for compression in ("raw", "tiff_lzw", "tiff_adobe_deflate", "packbits"):
        save(compression + ".tif", rgb, compression=compression)
    for name, image in dict(rgba=rgba, grey=grey, pal=palette, bits=bits, deep=deep).items():
        save(name + ".tif", image)
    save("rgb.ppm", rgb)
    save("grey.pgm", grey)
    save("bits.pbm", bits)


# The photo as all eight Exif orientations say it lies, in every format that can say so.
def make_oriented(photo, directory):
    image = Image.open(photo).convert("RGB").resize((61, 37))
    for orientation in range(1, 9):
        exif = Image.Exif()
        exif[274] = orientation
        exif[271] = "a camera"
        for name, options in dict(jpg={"quality": 95}, png={}, webp={"lossless": True}, tif={}).items():
            image.save(os.path.join(directory, "%d.%s" % (orientation, name)), exif=exif, **options)


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
