"""Decodes clips of 16 frames to 224x224 RGB with a peer, as video_bench and clips_bench do with
lade: clips of one file, or a folder of videos to batches."""

import argparse
import os
from pathlib import Path

import common
import media


def torchcodec_reader():
    import torch
    from torchcodec.decoders import VideoDecoder
    from torchcodec.transforms import Resize

    torch.set_num_threads(1)

    def read(path, pick, clip):
        # The files have a constant frame rate, for which this mode is meant.
        decoder = VideoDecoder(
            path,
            seek_mode="approximate",
            dimension_order="NHWC",
            num_ffmpeg_threads=1,
            transforms=[Resize((media.SIDE, media.SIDE))],
        )
        wanted = media.picked(pick, decoder.metadata.num_frames, clip)
        return decoder.get_frames_at(wanted).data.numpy()

    return read


def pyav_reader():
    import av
    import numpy

    def read(path, pick, clip):
        with av.open(path) as container:
            stream = container.streams.video[0]
            stream.codec_context.thread_count = 1
            wanted = media.picked(pick, stream.frames, clip)
            ticks = round(1 / (stream.average_rate * stream.time_base))
            container.seek(wanted[0] * ticks, stream=stream)
            left, pixels = set(wanted), []
            for frame in container.decode(stream):
                if frame.pts // ticks in left:
                    small = frame.reformat(
                        media.SIDE, media.SIDE, "rgb24", interpolation="BILINEAR"
                    )
                    pixels.append(small.to_ndarray())
                    left.remove(frame.pts // ticks)
                if not left:
                    break
        return numpy.stack(pixels)

    return read


def decord_reader():
    import decord

    def read(path, pick, clip):
        video = decord.VideoReader(path, width=media.SIDE, height=media.SIDE, num_threads=1)
        return video.get_batch(media.picked(pick, len(video), clip)).asnumpy()

    return read


def spdl_reader():
    import numpy
    import spdl.io
    import spdl.pipeline  # here, where no clock runs

    def read(path, pick, clip):
        packets = spdl.io.demux_video(path)
        wanted = media.picked(pick, len(packets), clip)
        filters = spdl.io.get_filter_desc(
            packets,
            scale_width=media.SIDE,
            scale_height=media.SIDE,
            scale_algo="bilinear",
            scale_mode=None,
            pix_fmt="rgb24",
        )
        frames = spdl.io.sample_decode_video(packets, wanted, filter_desc=filters)
        return numpy.asarray(spdl.io.to_numpy(spdl.io.convert_frames(frames)))

    return read


READERS = {
    "torchcodec": torchcodec_reader,
    "PyAV": pyav_reader,
    "decord": decord_reader,
    "SPDL": spdl_reader,
}


def load_folder(wanted, read):
    """Batches of [8, 16, 3, 224, 224] bytes."""
    import numpy

    paths = sorted(str(path) for path in Path(wanted.dir).iterdir())
    clips = wanted.items or len(paths)

    def load(index):
        return read(paths[index % len(paths)], wanted.pick, index)

    meter = media.Meter(wanted.reader)
    first, batch = 0.0, None
    for index, clip in enumerate(media.by_threads(wanted.reader, load, clips, wanted.threads)):
        if index % wanted.batch == 0:
            size = min(wanted.batch, clips - index)
            batch = numpy.empty((size, media.FRAMES, 3, media.SIDE, media.SIDE), numpy.uint8)
        batch[index % wanted.batch] = clip.transpose(0, 3, 1, 2)
        if index + 1 == len(batch):
            first = common.seconds_since_start()
            media.dump(wanted.dump, batch)
    meter.report(clips, media.FRAMES, threads=wanted.threads, first_batch_ms=first * 1e3)


def load_file(wanted, read):
    def load(clip):
        return read(wanted.file, wanted.pick, clip)

    load(0)
    meter = media.Meter(wanted.reader)
    for pixels in media.each(wanted.reader, load, wanted.items, wanted.threads):
        pass
    meter.report(wanted.items, len(pixels), threads=wanted.threads)
    if wanted.dump:
        media.dump(wanted.dump, load(0))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reader", choices=READERS, required=True)
    parser.add_argument("--pick", choices=["even", "contiguous"], default="even")
    parser.add_argument("--file", help="a video; without it, those of --dir")
    parser.add_argument("--dir", default="build/media/clips")
    parser.add_argument("--items", type=int, default=0, help="how many clips; 0: of each file one")
    parser.add_argument("--batch", type=int, default=8, help="clips to a batch")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--dump", help="file to write the first clip or batch to")
    wanted = parser.parse_args()
    try:
        read = READERS[wanted.reader]()
    except ImportError:
        common.not_installed(wanted.reader)
    (load_file if wanted.file else load_folder)(wanted, read)


if __name__ == "__main__":
    main()
