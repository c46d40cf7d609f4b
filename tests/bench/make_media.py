#!/usr/bin/env python3
"""Makes the videos and sounds that decoders are measured with, by the ffmpeg command line.

A video is a photograph that pans and rotates, a second one that moves across it, and the noise of
a camera: decoding it costs what decoding of real footage costs. All last 10 s, but those whose
instructions are counted; videos have 30 frames/s, and a key frame every 250 frames."""

import argparse
import math
import random
import subprocess
import wave
from pathlib import Path

SECONDS = 10
CLIPS = 64
SHORT_WAVS = 1000

# Of each video its size, and how it is encoded.
VIDEOS = {
    "h264-720p.mp4": (1280, 720, "libx264 -preset medium -g 250 -b:v 5600k"),
    "h264-256p.mp4": (454, 256, "libx264 -preset medium -g 250 -b:v 600k"),
    "hevc-720p.mp4": (1280, 720, "libx265 -preset fast -b:v 4000k -x265-params log-level=none"),
    "vp9-720p.webm": (1280, 720, "libvpx-vp9 -deadline good -cpu-used 5 -g 250 -b:v 4000k"),
    "av1-720p.mp4": (1280, 720, "libsvtav1 -preset 10 -g 250 -b:v 3000k"),
}
# The same codecs in little: callgrind takes fifty times as long.
SHORT_SECONDS = 1
SHORT_VIDEOS = {
    "h264-short.mp4": "libx264 -preset medium -g 250 -b:v 600k",
    "hevc-short.mp4": "libx265 -preset fast -b:v 500k -x265-params log-level=none",
    "vp9-short.webm": "libvpx-vp9 -deadline good -cpu-used 5 -g 250 -b:v 500k",
    "av1-short.mp4": "libsvtav1 -preset 10 -g 250 -b:v 400k",
}
SOUNDS = {
    "wav.wav": "pcm_s16le -ar 44100",
    "flac.flac": "flac -ar 44100",
    "mp3.mp3": "libmp3lame -b:a 192k -ar 44100",
    "aac.m4a": "aac -b:a 128k -ar 44100",
    "opus.opus": "libopus -b:a 96k -ar 48000",
    "wav-16k.wav": "pcm_s16le -ar 16000 -ac 1",
}
# Two channels, each a tone with vibrato, an overtone that comes and goes, and a little noise.
TONES = "|".join(
    f"0.2*sin({2 * math.pi * tone}*t+4*sin(30*t))"
    f"+0.1*sin({2 * math.pi * tone * 5}*t)*sin({beat}*t)+0.02*(random(0)-0.5)"
    for tone, beat in ((220, 3), (277, 5))
)


def ffmpeg(inputs, options, path, seconds=SECONDS):
    # x264 and x265 write the same on every machine with the same number of threads.
    words = ["ffmpeg", "-v", "error", "-nostdin", *inputs, "-t", str(seconds), *options]
    subprocess.run([*words, "-threads", "2", str(path)], check=True)


def motion(width, height, seed):
    """The filters of a scene: `seed` decides how fast and from where all moves."""
    chance = random.Random(seed)
    turn, x, y, over_x, over_y = (
        f"sin({chance.uniform(0.5, 1.8):.2f}*t+{chance.uniform(0, 6):.2f})" for _ in range(5)
    )
    wide, narrow = width * 3 // 4 * 2, width // 6 * 2
    return (
        f"[0]scale={wide}:{wide}:force_original_aspect_ratio=increase,format=yuv420p,"
        f"rotate=0.12*{turn},"
        f"crop={width}:{height}:(iw-ow)/2*(1+0.5*{x}):(ih-oh)/2*(1+0.4*{y})[back];"
        f"[1]scale={narrow}:-2,format=yuv420p[front];"
        f"[back][front]overlay=(W-w)/2*(1+0.7*{over_x}):(H-h)/2*(1+0.7*{over_y}),"
        "noise=alls=6:allf=t,format=yuv420p"
    )


def make_video(path, photos, size, codec, seed, seconds=SECONDS):
    inputs = []
    for offset in (0, 7):
        photo = photos[(seed + offset) % len(photos)]
        inputs += ["-loop", "1", "-framerate", "30", "-i", str(photo)]
    options = ["-filter_complex", motion(*size, seed), "-c:v", *codec.split()]
    ffmpeg(inputs, options, path, seconds)


def make_sound(path, codec):
    ffmpeg(["-f", "lavfi", "-i", f"aevalsrc={TONES}:s=48000"], ["-c:a", *codec.split()], path)


def make_short_wavs(directory):
    directory.mkdir()
    chance = random.Random(1)
    for number in range(SHORT_WAVS):
        with wave.open(str(directory / f"{number:04}.wav"), "wb") as file:
            file.setparams((1, 2, 16000, 0, "NONE", ""))
            file.writeframes(chance.randbytes(2 * 16000))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--photos", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True, help="directory to write to")
    parser.add_argument("--only", nargs="+", choices=VIDEOS, help="only these videos")
    parser.add_argument("--seconds", type=int, default=SECONDS, help="duration of the videos")
    wanted = parser.parse_args()
    wanted.out.mkdir(parents=True)
    photos = sorted(wanted.photos.glob("*.jpg"))
    for name in wanted.only or VIDEOS:
        width, height, codec = VIDEOS[name]
        make_video(wanted.out / name, photos, (width, height), codec, seed=11, seconds=wanted.seconds)
    if wanted.only:
        return
    (wanted.out / "clips").mkdir()
    width, height, codec = VIDEOS["h264-256p.mp4"]
    for name, short_codec in SHORT_VIDEOS.items():
        path = wanted.out / name
        make_video(path, photos, (width, height), short_codec, seed=11, seconds=SHORT_SECONDS)
    for seed in range(CLIPS):
        path = wanted.out / f"clips/{seed:02}.mp4"
        make_video(path, photos, (width, height), codec, seed)
    for name, codec in SOUNDS.items():
        make_sound(wanted.out / name, codec)
    make_short_wavs(wanted.out / "wav-1s")


if __name__ == "__main__":
    main()
