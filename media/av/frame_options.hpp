// The sizes and tensors of decoded video frames.

#pragma once

#include <lade/media/av/rational.hpp>
#include <lade/media/image.hpp>
#include <lade/tensor.hpp>

#include <string_view>

namespace lade::media {

// The spec of a frame's tensor. The options must have a size.
tensor_spec frame_spec(const image_options& options);

// Returns the options with the displayed size of a stored picture, if they have no size. Throws
// error(invalid_argument) if they have only a width or a height. `name`: of the video, for errors.
image_options with_size(const image_options& options, int width, int height,
                        const rational& sample_aspect, int exif_orientation, std::string_view name);

}  // namespace lade::media
