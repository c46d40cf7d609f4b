"""SPDL, as its own image example builds it: paths in groups of 32, each group decoded, resized and
batched by one call of `load_image_batch` in one of the pipeline's threads, 16 batches ahead.

By itself it keeps the aspect ratio, pads, and resizes bicubically; `--scale bilinear` is the plain
resize that the others do, and the faster."""

import functools
from importlib.metadata import version

import common

try:
    import spdl.io
    from spdl.pipeline import PipelineBuilder
except ImportError:
    common.not_installed("SPDL")

FILTERS = {
    "own": {},
    "bilinear": {"filter_desc": "scale=w=224:h=224:flags=bilinear,format=pix_fmts=rgb24"},
}


def main():
    parser = common.options(__doc__, batch=32)
    parser.add_argument("--scale", default="bilinear", choices=["bilinear", "own"])
    arguments = parser.parse_args()
    if arguments.transform != "resize":
        raise SystemExit("load_image_batch only resizes")
    meter = common.Meter("spdl_loader", arguments, spdl=version("spdl_io"), scale=arguments.scale)
    decode = functools.partial(
        spdl.io.load_image_batch, width=224, height=224, pix_fmt="rgb24", **FILTERS[arguments.scale]
    )
    pipeline = (
        PipelineBuilder()
        .add_source(common.paths(arguments))
        .aggregate(arguments.batch)
        .pipe(decode, concurrency=arguments.threads)
        .add_sink(16)
        .build(num_threads=arguments.threads)
    )
    with pipeline.auto_stop():
        for buffer in pipeline:
            meter.batch(spdl.io.to_numpy(buffer))
    meter.report()


if __name__ == "__main__":
    main()
