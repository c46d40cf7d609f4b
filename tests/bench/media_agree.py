#!/usr/bin/env python3
"""Whether programs decode the same as the ffmpeg command does: a comparison of their speed says
nothing otherwise. Runs each command with --items 1 and --dump, and prints the worst of them. Needs
NumPy.

Usage: media_agree.py KIND FILE -- COMMAND... [-- COMMAND...]...
KIND is `even` or `contiguous` for what frames of FILE the commands dump first, `planes` for the
evenly spaced ones as CHW, and `sound` for samples of 16 kHz and one channel."""

import json
import subprocess
import sys
import tempfile

import numpy

sys.path.insert(0, f"{sys.path[0]}/peers")
import media

CLOSE = 4  # levels of 8 bits in the mean: one scaler differs from another by less


def output_of_ffmpeg(path, *options):
    command = ["ffmpeg", "-v", "error", "-nostdin", "-i", path, *options, "-"]
    return subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout


def frames_of_ffmpeg(path):
    scale = f"scale={media.SIDE}:{media.SIDE}:flags=bilinear"
    pixels = output_of_ffmpeg(path, "-vf", scale, "-f", "rawvideo", "-pix_fmt", "rgb24")
    return numpy.frombuffer(pixels, numpy.uint8).reshape(-1, media.SIDE, media.SIDE, 3)


def samples_of_ffmpeg(path):
    samples = output_of_ffmpeg(path, "-ar", "16000", "-ac", "1", "-f", "f32le")
    return numpy.frombuffer(samples, numpy.float32)


def apart(one, other):
    return numpy.abs(one.astype(int) - other.astype(int)).mean()


def clip_of(dumped, kind):
    pixels = numpy.frombuffer(dumped, numpy.uint8)[: media.FRAMES * media.SIDE**2 * 3]
    if kind != "planes":
        return pixels.reshape(media.FRAMES, media.SIDE, media.SIDE, 3)
    return pixels.reshape(media.FRAMES, 3, media.SIDE, media.SIDE).transpose(0, 2, 3, 1)


def compare_frames(dumped, expected, kind):
    """A frame is wrong if one beside it is nearer, or none is close."""
    clip, wrong, worst = clip_of(dumped, kind), 0, 0.0
    pick = "contiguous" if kind == "contiguous" else "even"
    for frame, index in zip(clip, media.picked(pick, len(expected), 0)):
        beside = [i for i in (index - 1, index + 1) if 0 <= i < len(expected)]
        difference = apart(frame, expected[index])
        nearest = all(difference < apart(frame, expected[i]) for i in beside)
        wrong += not (nearest and difference < CLOSE)
        worst = max(worst, difference)
    return {"wrong_frames": int(wrong), "levels_apart": float(worst)}


def compare_samples(dumped, expected, kind):
    samples = numpy.frombuffer(dumped, numpy.float32)
    if len(samples) != len(expected):
        sys.exit(f"{len(samples)} samples, not {len(expected)}")
    return {"largest": float(numpy.abs(samples - expected).max())}


def dumped_by(command):
    with tempfile.NamedTemporaryFile() as file:
        words = [*command, "--items", "1", "--dump", file.name]
        try:
            subprocess.run(words, stdout=subprocess.DEVNULL, check=True)
        except (OSError, subprocess.CalledProcessError) as why:
            sys.exit(f"media_agree.py: {command[0]}: {why}")
        return file.read()


def commands_of(words):
    commands = []
    for word in words:
        if word == "--":
            commands.append([])
        else:
            commands[-1].append(word)
    return commands


def main():
    kind, path, *words = sys.argv[1:]
    expected = samples_of_ffmpeg(path) if kind == "sound" else frames_of_ffmpeg(path)
    compare = compare_samples if kind == "sound" else compare_frames
    found = [compare(dumped_by(command), expected, kind) for command in commands_of(words)]
    worst = {name: max(one[name] for one in found) for name in found[0]}
    print(json.dumps({"program": "media_agree", "compared": len(found), **worst}))


if __name__ == "__main__":
    main()
