// What FFmpeg does not tell of a GIF: whether it was cut off.

#pragma once

#include <cstddef>
#include <span>

namespace lade::media {

// Whether a GIF goes on to the end of its first image. Reads any bytes safely.
bool gif_is_whole(std::span<const std::byte> file) noexcept;

}  // namespace lade::media
