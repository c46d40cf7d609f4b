"""OpenCV in threads, as a careful user writes it: each image decoded to RGB and resized straight
into its place in the batch; OpenCV's own threads off, since the images are enough to do."""

import collections
import concurrent.futures

import common

try:
    import cv2
    import numpy
except ImportError:
    common.not_installed("OpenCV")

SIZE = common.SIZE

def shorter_side_and_crop(image):
    height, width = image.shape[:2]
    shorter = min(height, width)
    image = cv2.resize(image, (256 * width // shorter, 256 * height // shorter))
    top, left = (image.shape[0] - SIZE) // 2, (image.shape[1] - SIZE) // 2
    return image[top : top + SIZE, left : left + SIZE]


def load(path, transform, slot):
    image = cv2.imread(path, cv2.IMREAD_COLOR_RGB)
    if transform == "resize":
        cv2.resize(image, (SIZE, SIZE), dst=slot)
    else:
        slot[:] = shorter_side_and_crop(image)


def finish(batch, jobs, meter):
    for job in jobs:
        job.result()
    meter.batch(batch)


def main():
    arguments = common.options(__doc__).parse_args()
    if arguments.transform == "train":
        raise SystemExit("OpenCV has no random resized crop")
    cv2.setNumThreads(1)
    meter = common.Meter("opencv_loader", arguments, opencv=cv2.__version__)
    files = common.paths(arguments)
    with concurrent.futures.ThreadPoolExecutor(arguments.threads) as pool:

        def start(begin):
            group = files[begin : begin + arguments.batch]
            batch = numpy.empty((len(group), SIZE, SIZE, 3), numpy.uint8)
            jobs = [
                pool.submit(load, path, arguments.transform, slot)
                for path, slot in zip(group, batch)
            ]
            return batch, jobs

        # One batch is filled while the one before is used.
        waiting = collections.deque()
        for begin in range(0, len(files), arguments.batch):
            waiting.append(start(begin))
            if len(waiting) == 2:
                finish(*waiting.popleft(), meter)
        while waiting:
            finish(*waiting.popleft(), meter)
    meter.report()


if __name__ == "__main__":
    main()
