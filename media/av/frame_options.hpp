// What frames of videos become.

#pragma once

#include <lade/media/av/rational.hpp>
#include <lade/media/image.hpp>
#include <lade/tensor.hpp>

#include <string_view>

namespace lade::media {

// The tensor of one frame, whose size the options have.
tensor_spec frame_spec(const image_options& options);

// The options with the size of a stored picture as it is shown, unless they have one. Throws
// error(invalid_argument) if they have only a width or a height; `name` is what errors call the
// video.
image_options with_size(const image_options& options, int width, int height,
                        const rational& sample_aspect, int exif_orientation, std::string_view name);

}  // namespace lade::media
