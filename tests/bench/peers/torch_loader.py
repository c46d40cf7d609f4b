"""PyTorch's DataLoader over torchvision's ImageFolder, as their documents advise: a worker process
to a CPU, each with one thread, kept from epoch to epoch, two batches ahead. Images are decoded by
torchvision to tensors (`--decoder tensor`), or by Pillow."""

import gc

import common

try:
    import torch
    import torchvision
    from torchvision.io import ImageReadMode, decode_image
    from torchvision.transforms import v2
except ImportError:
    common.not_installed("PyTorch and torchvision")

TO_NORMALISED = [
    v2.ToDtype(torch.float32, scale=True),
    v2.Normalize(mean=common.MEAN, std=common.DEVIATION),
]
TRANSFORMS = {
    "train": [v2.RandomResizedCrop(common.SIZE), v2.RandomHorizontalFlip()],
    "val": [v2.Resize(256), v2.CenterCrop(common.SIZE)],
    "resize": [v2.Resize((common.SIZE, common.SIZE))],
}


def to_tensor(path):
    return decode_image(path, mode=ImageReadMode.RGB)


def images_of(arguments):
    steps = [*TRANSFORMS[arguments.transform]]
    if arguments.decoder == "pillow":
        steps.append(v2.PILToTensor())
    if arguments.transform == "train":
        steps += TO_NORMALISED
    loader = {"loader": to_tensor} if arguments.decoder == "tensor" else {}
    return torchvision.datasets.ImageFolder(arguments.dir, v2.Compose(steps), **loader)


def main():
    parser = common.options(__doc__)
    parser.add_argument("--decoder", default="tensor", choices=["tensor", "pillow"])
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    meter = common.Meter("torch_loader", arguments, decoder=arguments.decoder)
    images = images_of(arguments)
    loader = torch.utils.data.DataLoader(
        images,
        batch_size=arguments.batch,
        sampler=torch.utils.data.RandomSampler(images, num_samples=arguments.images or None),
        num_workers=arguments.threads,
        persistent_workers=True,
        prefetch_factor=2,
    )
    for batch, _ in loader:
        meter.batch(batch)
    # The workers' CPU time is known when they have ended.
    del loader
    gc.collect()
    meter.report()


if __name__ == "__main__":
    main()
