#include "gif.hpp"

namespace lade::media {

// The byte at `at`, or 0 behind the end.
static std::size_t gif_byte(std::span<const std::byte> file, std::size_t at) {
  return at < file.size() ? std::to_integer<std::size_t>(file[at]) : 0;
}

// The bytes of the colour table that a field of flags announces.
static std::size_t gif_colours(std::size_t flags) {
  return (flags & 0x80) != 0 ? std::size_t{6} << (flags & 7) : 0;
}

// Behind the blocks of at most 255 bytes from `at`, and the empty one that ends them.
static std::size_t gif_skip_blocks(std::span<const std::byte> file, std::size_t at) {
  while (const auto length = gif_byte(file, at)) at += 1 + length;
  return at + 1;
}

bool gif_is_whole(std::span<const std::byte> file) noexcept {
  constexpr std::size_t extension = 0x21;
  constexpr std::size_t image = 0x2c;
  std::size_t at = 13 + gif_colours(gif_byte(file, 10));
  while (gif_byte(file, at) == extension) at = gif_skip_blocks(file, at + 2);
  if (gif_byte(file, at) != image) return false;
  at += 11 + gif_colours(gif_byte(file, at + 9));
  return gif_skip_blocks(file, at) <= file.size();
}

}  // namespace lade::media
