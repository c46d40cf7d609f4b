# oracles.py LIBRARY: the frames that PyAV or torchcodec has. Reads queries from standard input, a
# line each: the path of a video and numbers of frames, or "@" and times in seconds. Writes a line
# for each query: of each frame its time in seconds, "nan" if the library does not know it, and the
# MD5 of its planes.
#
# PyAV decodes the whole file. torchcodec returns the frames of a query as RGB, which are compared
# with PyAV's, so that the MD5 is that of the frame that looks most like it.
#
# Exit status 77: the library is not installed.
import bisect
import functools
import hashlib
import math
import sys

try:
    import av
    import numpy

    if sys.argv[1] == "torchcodec":
        from torchcodec.decoders import VideoDecoder
except (ImportError, RuntimeError) as missing:  # torchcodec raises the second without FFmpeg
    print(missing, file=sys.stderr)
    sys.exit(77)


# The bytes of a frame's planes without padding.
def planes(frame):
    for plane, component in zip(frame.planes, frame.format.components):
        rows = numpy.frombuffer(plane, numpy.uint8).reshape(-1, plane.line_size)
        yield rows[:plane.height, :plane.width * (2 if component.bits > 8 else 1)].tobytes()


# AVI has no timestamps: PyAV takes those of decoding, which are later where there are B-frames.
def states_times(container):
    return container.format.name != "avi"


# Every fourth pixel of every fourth row tells the frames of a test picture apart.
def thin(pictures):
    return pictures[:, ::4, ::4].astype(numpy.int16)


@functools.lru_cache(maxsize=1)
def decoded(path):
    times, digests, pictures = [], [], []
    with av.open(path) as container:
        for frame in container.decode(video=0):
            times.append(float(frame.pts * frame.time_base) if states_times(container) else math.nan)
            digests.append(hashlib.md5(b"".join(planes(frame))).hexdigest())
            pictures.append(frame.to_ndarray(format="rgb24"))
    return times, digests, thin(numpy.stack(pictures))


@functools.lru_cache(maxsize=1)
def opened(path):
    return VideoDecoder(path, seek_mode="exact", dimension_order="NHWC")


def frames_of_pyav(path, numbers):
    times, digests, _ = decoded(path)
    return [(times[number], digests[number]) for number in numbers]


def frames_of_pyav_at(path, seconds):
    times, _, _ = decoded(path)
    return frames_of_pyav(path, [bisect.bisect_right(times, each) - 1 for each in seconds])


def found_in_pyav(path, batch):
    _, digests, pictures = decoded(path)
    for time, picture in zip(batch.pts_seconds, thin(batch.data.numpy())):
        nearest = numpy.abs(pictures - picture).mean(axis=(1, 2, 3)).argmin()
        yield float(time), digests[nearest]


def frames_of_torchcodec(path, numbers):
    return found_in_pyav(path, opened(path).get_frames_at(numbers))


def frames_of_torchcodec_at(path, seconds):
    return found_in_pyav(path, opened(path).get_frames_played_at(seconds))


by_number, by_time = {
    "PyAV": (frames_of_pyav, frames_of_pyav_at),
    "torchcodec": (frames_of_torchcodec, frames_of_torchcodec_at),
}[sys.argv[1]]
for line in sys.stdin:
    path, *wanted = line.split()
    if wanted[0] == "@":
        frames = by_time(path, list(map(float, wanted[1:])))
    else:
        frames = by_number(path, list(map(int, wanted)))
    print(*(f"{time:.9f} {digest}" for time, digest in frames))
