// Resizes pictures into any memory.

#pragma once

#include "colour_matrix.hpp"
#include "crop.hpp"
#include "pixel_writer.hpp"

#include <lade/media/picture.hpp>

namespace lade::media {

// The part of a picture that becomes the result, in luma samples, and its orientation.
struct picture_view {
  axis_range x;
  axis_range y;
  orientation turn;
};

// Resizes a part of a picture to the size of `to`, and writes it there: see the public
// write_picture. Uses the calling thread's resizer and writer, which keep their tables for
// successive pictures with equal views.
void write_picture(const picture& from, const picture_view& view, const pixel_target& to);

}  // namespace lade::media
