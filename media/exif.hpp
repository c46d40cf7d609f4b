// The one thing of Exif that changes an image: how the camera was held.

#pragma once

#include <cstddef>
#include <span>

namespace lade::media {

// Tag 274 of an image file (JPEG, PNG, WebP or TIFF), 1 to 8; 1 when there is none or when what is
// there makes no sense. Reads any bytes safely.
int exif_orientation(std::span<const std::byte> file) noexcept;

}  // namespace lade::media
