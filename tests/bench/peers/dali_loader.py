"""NVIDIA DALI on CPUs: a pipeline of its own operators, two batches ahead. Training crops are
decoded alone (`decoders.image_random_crop`)."""

import common

try:
    from nvidia.dali import fn, pipeline_def, types
except ImportError:
    common.not_installed("DALI")


def train(encoded):
    images = fn.decoders.image_random_crop(
        encoded, random_area=[0.08, 1.0], random_aspect_ratio=[3 / 4, 4 / 3]
    )
    return fn.crop_mirror_normalize(
        fn.resize(images, size=[common.SIZE, common.SIZE]),
        mirror=fn.random.coin_flip(),
        mean=[255 * mean for mean in common.MEAN],
        std=[255 * deviation for deviation in common.DEVIATION],
        dtype=types.FLOAT,
        output_layout="CHW",
    )


def val(encoded):
    images = fn.resize(fn.decoders.image(encoded), resize_shorter=256)
    return fn.crop(images, crop=[common.SIZE, common.SIZE])


def resize(encoded):
    return fn.resize(fn.decoders.image(encoded), size=[common.SIZE, common.SIZE])


@pipeline_def
def batches(files, transform):
    encoded, _ = fn.readers.file(files=files)
    return transform(encoded)


def main():
    arguments = common.options(__doc__).parse_args()
    meter = common.Meter("dali_loader", arguments)
    files = common.paths(arguments)
    pipeline = batches(
        files,
        {"train": train, "val": val, "resize": resize}[arguments.transform],
        batch_size=arguments.batch,
        num_threads=arguments.threads,
        device_id=None,
        prefetch_queue_depth=2,
    )
    pipeline.build()
    for _ in range(len(files) // arguments.batch):
        (images,) = pipeline.run()
        meter.batch(images.as_array())
    del pipeline
    meter.report()


if __name__ == "__main__":
    main()
