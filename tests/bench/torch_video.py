"""How many frames a second torchcodec decodes on a GPU: the videos and rounds of nvdec_bench, whose
number of sessions --threads should be. Unlike there, frames become RGB tensors. Prints a line of
JSON. Without torch, torchcodec or a GPU it says so, and exits with 77.

    python3 tests/bench/torch_video.py --dir build/media/clips --threads 7
"""

import argparse
import json
import pathlib
import statistics
import sys
import time
from concurrent.futures import ThreadPoolExecutor

WARM_UP, ROUNDS = 1, 5


def leave(why):
    print(f"torch_video: {why}")
    sys.exit(77)


try:
    import torch
    import torchcodec
    from torchcodec.decoders import VideoDecoder
except (ImportError, OSError, RuntimeError) as missing:  # torchcodec may not find FFmpeg
    leave(missing)


def decode(video):
    """The number of frames, and whether the CPU has decoded them."""
    # The files have a constant frame rate, for which this mode is meant.
    decoder = VideoDecoder(video, device="cuda", seek_mode="approximate")
    frames = decoder.get_frames_in_range(0, len(decoder)).data
    return len(frames), bool(getattr(decoder, "cpu_fallback", False))


def round_of(videos, threads):
    """Frames a second, and how many videos the CPU has decoded."""
    begin = time.perf_counter()
    with ThreadPoolExecutor(threads) as pool:
        done = list(pool.map(decode, videos))
    torch.cuda.synchronize()
    seconds = time.perf_counter() - begin
    return sum(frames for frames, _ in done) / seconds, sum(by_cpu for _, by_cpu in done)


parser = argparse.ArgumentParser()
parser.add_argument("--dir", type=pathlib.Path, default="build/media/clips")
parser.add_argument("--threads", type=int, default=1)
options = parser.parse_args()
if not torch.cuda.is_available():
    leave("torch has no GPU")
videos = [path.read_bytes() for path in sorted(options.dir.iterdir())]
try:
    rounds = [round_of(videos, max(options.threads, 1)) for _ in range(WARM_UP + ROUNDS)][WARM_UP:]
except RuntimeError as failure:  # a torchcodec that was built without CUDA
    leave(failure)
print(
    json.dumps(
        {
            "bench": "torch_video",
            "torch": torch.__version__,
            "torchcodec": torchcodec.__version__,
            "threads": options.threads,
            "frames_s": round(statistics.median(rate for rate, _ in rounds), 1),
            "videos_by_cpu": rounds[-1][1],
        }
    )
)
