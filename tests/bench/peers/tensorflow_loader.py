"""tf.data, as TensorFlow's own ImageNet input is built: files are read and decoded by a parallel
map, training crops alone (`decode_and_crop_jpeg`), with a pool of threads of its own, two batches
ahead. Its bilinear resize is not antialiased, which costs less; images stay [height, width, 3]."""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import common  # noqa: E402

try:
    import tensorflow as tf
except ImportError:
    common.not_installed("TensorFlow")


def train(encoded):
    begin, size, _ = tf.image.sample_distorted_bounding_box(
        tf.image.extract_jpeg_shape(encoded),
        tf.zeros([1, 0, 4]),
        area_range=(0.08, 1.0),
        aspect_ratio_range=(3 / 4, 4 / 3),
        max_attempts=10,
        use_image_if_no_bounding_boxes=True,
    )
    window = tf.stack([begin[0], begin[1], size[0], size[1]])
    image = tf.image.decode_and_crop_jpeg(encoded, window, channels=3)
    image = tf.image.random_flip_left_right(tf.image.resize(image, [common.SIZE, common.SIZE]))
    return (image / 255 - common.MEAN) / common.DEVIATION


def resize(encoded):
    image = tf.image.resize(tf.image.decode_jpeg(encoded, 3), [common.SIZE, common.SIZE])
    return tf.cast(tf.round(image), tf.uint8)


def main():
    arguments = common.options(__doc__).parse_args()
    if arguments.transform == "val":
        raise SystemExit("written for train and resize")
    meter = common.Meter("tensorflow_loader", arguments)
    transform = {"train": train, "resize": resize}[arguments.transform]
    options = tf.data.Options()
    options.threading.private_threadpool_size = arguments.threads
    options.deterministic = False
    batches = (
        tf.data.Dataset.from_tensor_slices(common.paths(arguments))
        .map(lambda path: transform(tf.io.read_file(path)), arguments.threads)
        .batch(arguments.batch)
        .prefetch(2)
        .with_options(options)
    )
    for batch in batches:
        meter.batch(batch.numpy())
    meter.report()


if __name__ == "__main__":
    main()
