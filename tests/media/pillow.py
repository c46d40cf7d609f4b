"""What Pillow makes of images, for comparison: one command per behaviour, raw pixels on stdout.

Every image is printed as a line "<width> <height> <channels>" followed by its bytes.
"""

import sys

from PIL import Image, ImageOps


def put(image):
    channels = len(image.getbands())
    sys.stdout.buffer.write(b"%d %d %d\n" % (*image.size, channels))
    sys.stdout.buffer.write(image.tobytes())


def decode(mode, *files):
    for file in files:
        put(Image.open(file).convert(mode))


def orient(*files):
    for file in files:
        put(ImageOps.exif_transpose(Image.open(file)).convert("RGB"))


def resize(file, width, height, left, top, right, bottom):
    image = Image.open(file).convert("RGB")
    box = (float(left), float(top), float(right), float(bottom))
    put(image.resize((int(width), int(height)), Image.BILINEAR, box))


# torchvision's Resize(shorter) and CenterCrop(size).
def centre_crop(file, shorter, size):
    image = Image.open(file).convert("RGB")
    shorter, size = int(shorter), int(size)
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


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
