// Writing images for people to look at: contact sheets of what a pipeline makes.

#pragma once

#include <lade/buffer.hpp>
#include <lade/tensor.hpp>

namespace lade::media {

// A PNG file of `image`: u8 [height, width, channels] with 1 or 3 channels, of any strides. Any
// thread. Throws error(invalid_argument) for other tensors.
buffer encode_png(const tensor& image);

}  // namespace lade::media
