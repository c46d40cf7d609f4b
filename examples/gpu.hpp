// The option --device: a GPU decodes. A trainer would use the batches where they are; the loaders
// copy them back to the host, for their picture.

#pragma once

#include <lade/media/av/clip.hpp>
#include <lade/media/image.hpp>
#include <lade/pipeline.hpp>
#include <lade/sample.hpp>
#include <lade/sample_batch.hpp>

#include "options.hpp"
#include "report.hpp"

// Batches of images that GPU `wanted.device` decodes by nvJPEG. Where its library is missing, the
// CPU decodes, and a copy brings the batches to the GPU. The report gets a row with the number of
// images that each decoder has decoded.
//
// Throws lade::error if there is no such GPU, or if the program was built without lade-cuda.
lade::pipeline<lade::sample_batch> images_by_gpu(const lade::pipeline<lade::sample>& files,
                                                 const lade::media::image_options& image,
                                                 const options& settings, report& result);

// The same of clips, by NVDEC. The CPU decodes videos that the GPU cannot decode, and all videos if
// the program was built without lade-nvdec. A video that cannot be decoded fails its batch: throws
// usage_error for --skip-bad.
lade::pipeline<lade::sample_batch> clips_by_gpu(const lade::pipeline<lade::sample>& videos,
                                                const lade::media::clip_options& clip,
                                                const options& settings, report& result);
