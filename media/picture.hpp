// Pictures, written to any memory.

#pragma once

#include "colour_matrix.hpp"
#include "crop.hpp"
#include "pixel_writer.hpp"

#include <lade/media/picture.hpp>

namespace lade::media {

// The part of a picture that becomes the result, in its luma samples, and how that is turned.
struct picture_view {
  axis_range x;
  axis_range y;
  orientation turn;
};

// All of a picture, as it is stored.
picture_view whole_picture(const picture& from) noexcept;

// Resizes a part of a picture to the size of `to`, and writes it there: see the public
// write_picture. The calling thread's resizer and writer do it: equal pictures and views, one after
// another, share their tables.
void write_picture(const picture& from, const picture_view& view, const pixel_target& to);

}  // namespace lade::media
