#include "inflate.hpp"

#include <zlib.h>

#include <algorithm>
#include <limits>
#include <new>

namespace lade::io {

// zlib counts bytes in 32 bits.
static uInt zlib_count(std::size_t bytes) noexcept {
  return static_cast<uInt>(std::min<std::size_t>(bytes, std::numeric_limits<uInt>::max()));
}

static bool inflate_all(z_stream& stream, std::span<const std::byte> from,
                        std::span<std::byte> into) noexcept {
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(from.data()));
  stream.next_out = reinterpret_cast<Bytef*>(into.data());
  while (true) {
    auto taken =
        static_cast<std::size_t>(reinterpret_cast<const std::byte*>(stream.next_in) - from.data());
    auto made =
        static_cast<std::size_t>(reinterpret_cast<std::byte*>(stream.next_out) - into.data());
    auto offered = stream.avail_in = zlib_count(from.size() - taken);
    auto room = stream.avail_out = zlib_count(into.size() - made);
    // With Z_FINISH, zlib keeps no window of its own.
    bool is_last = taken + offered == from.size() && made + room == into.size();
    int result = inflate(&stream, is_last ? Z_FINISH : Z_NO_FLUSH);
    if (result == Z_STREAM_END)
      return taken + offered - stream.avail_in == from.size() &&
             made + room - stream.avail_out == into.size();
    if (result != Z_OK) return false;
  }
}

bool inflate_exactly(std::span<const std::byte> from, std::span<std::byte> into) {
  std::byte none{};  // zlib takes no null
  if (into.empty()) into = std::span(&none, 0);
  z_stream stream{};
  if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) throw std::bad_alloc();
  bool exact = inflate_all(stream, from, into);
  inflateEnd(&stream);
  return exact;
}

std::uint32_t crc32_of(std::span<const std::byte> bytes) noexcept {
  return static_cast<std::uint32_t>(
      ::crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

}  // namespace lade::io
