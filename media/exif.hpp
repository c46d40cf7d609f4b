// How a camera was held, as image files tell it.

#pragma once

#include <lade/detail/common/byte_view.hpp>

namespace lade::media {

// The orientation of a JPEG, PNG, WebP or TIFF file, 1 to 8: of its Exif data (also where a PNG has
// them as a "raw profile" in text), else of its XMP data, else 1. Reads any bytes safely.
int exif_orientation(detail::byte_view file);

}  // namespace lade::media
