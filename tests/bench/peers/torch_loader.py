"""PyTorch's DataLoader over torchvision's ImageFolder, with Pillow, as their documents advise: a
worker process to a CPU, each with one thread, kept from epoch to epoch, two batches ahead."""

import gc

import common

try:
    import torch
    import torchvision
    from torchvision import transforms
except ImportError:
    common.not_installed("PyTorch and torchvision")

NORMALISE = transforms.Normalize(mean=[0.485, 0.456, 0.406], std=[0.229, 0.224, 0.225])
TRANSFORMS = {
    "train": [
        transforms.RandomResizedCrop(224),
        transforms.RandomHorizontalFlip(),
        transforms.ToTensor(),
        NORMALISE,
    ],
    "val": [
        transforms.Resize(256),
        transforms.CenterCrop(224),
        transforms.ToTensor(),
        NORMALISE,
    ],
    "resize": [transforms.Resize((224, 224)), transforms.PILToTensor()],
}


def main():
    arguments = common.options(__doc__).parse_args()
    torch.set_num_threads(1)
    meter = common.Meter(
        "torch_loader", arguments, torch=torch.__version__, torchvision=torchvision.__version__
    )
    images = torchvision.datasets.ImageFolder(
        arguments.dir, transforms.Compose(TRANSFORMS[arguments.transform])
    )
    loader = torch.utils.data.DataLoader(
        images,
        batch_size=arguments.batch,
        sampler=torch.utils.data.RandomSampler(images, num_samples=arguments.images or None),
        num_workers=arguments.threads,
        persistent_workers=True,
        prefetch_factor=2,
    )
    for batch, _ in loader:
        meter.batch(len(batch))
    # The workers' CPU time is known when they have ended.
    del loader
    gc.collect()
    meter.report()


if __name__ == "__main__":
    main()
