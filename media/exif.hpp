// The orientation that image files store in their metadata.

#pragma once

#include <lade/support/byte_view.hpp>

namespace lade::media {

// The orientation of a JPEG, PNG, WebP or TIFF file, 1 to 8. Sources, the first that has one: Exif
// data, also in a "raw profile" text of a PNG; XMP data; else 1. Safe on any bytes.
int exif_orientation(support::byte_view file);

}  // namespace lade::media
