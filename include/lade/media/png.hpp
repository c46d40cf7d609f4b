// PNG files of images for people, such as contact sheets of the output of a pipeline.

#pragma once

#include <lade/buffer.hpp>
#include <lade/tensor.hpp>

namespace lade::media {

// Returns a PNG file of `image`: u8 [height, width, channels] with 1 or 3 channels and any strides.
// Any thread. Throws error(invalid_argument) for any other tensor.
buffer encode_png(const tensor& image);

}  // namespace lade::media
