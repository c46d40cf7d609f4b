"""Decodes sounds to 16 kHz mono floats with a peer, as audio_bench does with lade: one file over and
over, or the .wav files of a directory as they are."""

import argparse
from pathlib import Path

import common
import media

RATE = 16000


def torchcodec_reader():
    import torch
    from torchcodec.decoders import AudioDecoder

    torch.set_num_threads(1)

    def read(path):
        samples = AudioDecoder(path, sample_rate=RATE, num_channels=1).get_all_samples()
        return samples.data[0].numpy()

    return read


def pyav_reader():
    import av
    import numpy

    def read(path):
        resampler = av.AudioResampler("flt", "mono", RATE)
        with av.open(path) as container:
            container.streams.audio[0].codec_context.thread_count = 1
            frames = [
                part.to_ndarray()[0]
                for frame in container.decode(audio=0)
                for part in resampler.resample(frame)
            ]
        frames += [part.to_ndarray()[0] for part in resampler.resample(None)]
        return numpy.concatenate(frames)

    return read


def spdl_reader():
    import spdl.io
    import spdl.pipeline  # here, where no clock runs

    # In one step, as the ffmpeg command does: its own description of several mixes channels in 16 bit.
    filters = f"aformat=sample_fmts=flt:sample_rates={RATE}:channel_layouts=mono"

    def read(path):
        return spdl.io.to_numpy(spdl.io.load_audio(path, filter_desc=filters))[:, 0]

    return read


def decord_reader():
    import decord

    def read(path):
        return decord.AudioReader(path, sample_rate=RATE, mono=True)[:].asnumpy()[0]

    return read


def spdl_wav_reader():
    import spdl.io

    def read(path):
        with open(path, "rb") as file:
            return spdl.io.to_numpy(spdl.io.load_wav(file.read()))

    return read


def soundfile_reader():
    import soundfile

    def read(path):  # of 16 kHz and one channel: it does not resample
        return soundfile.read(path, dtype="float32")[0]

    return read


READERS = {
    "torchcodec": torchcodec_reader,
    "PyAV": pyav_reader,
    "decord": decord_reader,
    "SPDL": spdl_reader,
    "SPDL load_wav": spdl_wav_reader,
    "libsndfile": soundfile_reader,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reader", choices=READERS, required=True)
    parser.add_argument("--file", help="a sound; without it, those of --dir")
    parser.add_argument("--dir", default="build/media/wav-1s")
    parser.add_argument("--items", type=int, default=1, help="how many files")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--dump", help="file to write the last samples to")
    wanted = parser.parse_args()
    try:
        read = READERS[wanted.reader]()
    except ImportError:
        common.not_installed(wanted.reader)
    paths = [wanted.file] if wanted.file else sorted(str(p) for p in Path(wanted.dir).iterdir())

    def load(item):
        return read(paths[item % len(paths)])

    load(0)
    meter = media.Meter(wanted.reader)
    for samples in media.each(wanted.reader, load, wanted.items, wanted.threads):
        pass
    seconds = wanted.items * len(samples) / RATE
    meter.report(wanted.items, len(samples), threads=wanted.threads, seconds=seconds)
    media.dump(wanted.dump, samples)


if __name__ == "__main__":
    main()
