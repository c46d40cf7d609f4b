"""How many JPEG images a second torchvision decodes on a GPU: the files, batches and rounds of
jpeg_bench. Prints a line of JSON. Without torch, torchvision or a GPU it says so, and exits with 77.

    python3 tests/bench/torch_jpeg.py
"""

import json
import statistics
import sys
import time

WIDTH, HEIGHT = 500, 375
BATCH, BATCHES = 128, 16
WARM_UP, ROUNDS = 2, 11


def leave(why):
    print(why)
    sys.exit(77)


try:
    import torch
    import torchvision.io
except ImportError as missing:
    leave(f"torch_jpeg: {missing}")


def picture(seed):
    """The pixels that jpeg_bench draws: [3, height, width]."""
    i = torch.arange(3 * WIDTH).reshape(1, WIDTH, 3)
    y = torch.arange(HEIGHT).reshape(HEIGHT, 1, 1)
    return ((i * y + seed) // 97 + i * 7919 % 23).to(torch.uint8).permute(2, 0, 1).contiguous()


def images_per_second(files):
    begin = time.perf_counter()
    for _ in range(BATCHES):
        torchvision.io.decode_jpeg(files, device="cuda")
        torch.cuda.synchronize()
    return BATCHES * len(files) / (time.perf_counter() - begin)


if not torch.cuda.is_available():
    leave("torch_jpeg: torch has no GPU")
files = [torchvision.io.encode_jpeg(picture(seed), quality=90) for seed in range(BATCH)]
try:
    rates = [images_per_second(files) for _ in range(WARM_UP + ROUNDS)][WARM_UP:]
except RuntimeError as failure:  # a torchvision that was built without nvJPEG
    leave(f"torch_jpeg: {failure}")
print(
    json.dumps(
        {
            "bench": "torch_jpeg",
            "torch": torch.__version__,
            "torchvision": torchvision.__version__,
            "images_per_s": round(statistics.median(rates)),
        }
    )
)
