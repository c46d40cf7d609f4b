"""The network of examples/train_libtorch, fed by PyTorch's DataLoader: Pillow and NumPy in worker
processes that are kept from epoch to epoch, two batches ahead each. Prints for each epoch what the
example prints, and the CPU seconds of the whole at the end."""

import argparse
import gc
import math
import random
import time
from pathlib import Path

import common

try:
    import numpy as np
    import torch
    from PIL import Image
    from torch import nn
except ImportError:
    common.not_installed("PyTorch, NumPy and Pillow")

SIZE = 64


class ResidualBlock(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.first = nn.Conv2d(inputs, outputs, 3, stride=2, padding=1, bias=False)
        self.first_norm = nn.BatchNorm2d(outputs)
        self.second = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
        self.second_norm = nn.BatchNorm2d(outputs)
        self.shortcut = nn.Conv2d(inputs, outputs, 1, stride=2, bias=False)

    def forward(self, images):
        out = torch.relu(self.first_norm(self.first(images)))
        return torch.relu(self.second_norm(self.second(out)) + self.shortcut(images))


def make_network(classes):
    return nn.Sequential(nn.Conv2d(3, 32, 3, stride=2, padding=1), nn.ReLU(), ResidualBlock(32, 64),
                         ResidualBlock(64, 128), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(0.2),
                         nn.Linear(128, classes))


def random_box(width, height, least=0.7):
    """A part as torchvision's RandomResizedCrop chooses it."""
    for _ in range(10):
        area = random.uniform(least, 1) * width * height
        aspect = math.exp(random.uniform(math.log(3 / 4), math.log(4 / 3)))
        w, h = round(math.sqrt(area * aspect)), round(math.sqrt(area / aspect))
        if w <= width and h <= height:
            left, top = random.randint(0, width - w), random.randint(0, height - h)
            return left, top, left + w, top + h
    return 0, 0, width, height


class Images(torch.utils.data.Dataset):
    def __init__(self, folder, train):
        classes = sorted(path.name for path in Path(folder).iterdir())
        self.files = [(path, label) for label, name in enumerate(classes)
                      for path in sorted(Path(folder, name).iterdir())]
        self.classes = len(classes)
        self.train = train

    def __len__(self):
        return len(self.files)

    def __getitem__(self, index):
        path, label = self.files[index]
        image = Image.open(path).convert("RGB")
        box = random_box(*image.size) if self.train else None
        pixels = np.asarray(image.resize((SIZE, SIZE), Image.Resampling.BILINEAR, box=box), np.float32)
        if self.train and random.random() < 0.5:
            pixels = pixels[:, ::-1]
        pixels = (pixels * (1 / 255) - 0.5) * 4
        return torch.from_numpy(np.ascontiguousarray(pixels.transpose(2, 0, 1))), label


def loader_of(images, arguments):
    return torch.utils.data.DataLoader(
        images, batch_size=arguments.batch, shuffle=images.train, drop_last=images.train,
        num_workers=arguments.workers, persistent_workers=True, prefetch_factor=2)


def timed(loader, waited):
    """The batches of an epoch. Adds the seconds that the loop has waited for them to waited[0]."""
    begin = time.perf_counter()
    batches = iter(loader)
    while True:
        batch = next(batches, None)
        waited[0] += time.perf_counter() - begin
        if batch is None:
            return
        yield batch
        begin = time.perf_counter()


def train(network, loader, optimizer):
    network.train()
    loss_sum = 0.0
    waited = [0.0]
    begin = time.perf_counter()
    for images, labels in timed(loader, waited):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(network(images), labels)
        loss.backward()
        optimizer.step()
        loss_sum += loss.item()
    return loss_sum / len(loader), time.perf_counter() - begin, waited[0]


def test(network, loader):
    network.eval()
    with torch.no_grad():
        correct = sum((network(images).argmax(1) == labels).sum().item() for images, labels in loader)
    return 100 * correct / len(loader.dataset)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", help="as train_libtorch draws it")
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--workers", type=int, default=1, help="processes that load images")
    parser.add_argument("--threads", type=int, default=1, help="of the network")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(0)
    before = common.cpu_seconds()
    images = Images(Path(arguments.data, "train"), True)
    loader = loader_of(images, arguments)
    test_loader = loader_of(Images(Path(arguments.data, "test"), False), arguments)
    network = make_network(images.classes)
    optimizer = torch.optim.AdamW(network.parameters())
    for epoch in range(arguments.epochs):
        for group in optimizer.param_groups:
            group["lr"] = 3e-3 * 0.75**epoch
        loss, seconds, waited = train(network, loader, optimizer)
        correct = test(network, test_loader)
        per_second = len(loader) * arguments.batch / seconds
        print(f"epoch {epoch + 1:2}  loss {loss:.4f}  test {correct:5.1f} %  {seconds:6.1f} s  "
              f"{per_second:5.0f} images/s  waited {100 * waited / seconds:.2f} %", flush=True)
    # The workers' CPU time is known when they have ended.
    del loader, test_loader
    gc.collect()
    print(f"CPU {common.cpu_seconds() - before:.1f} s")


if __name__ == "__main__":
    main()
