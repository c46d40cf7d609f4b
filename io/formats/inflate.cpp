#include "inflate.hpp"

#include <libdeflate.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <new>

namespace lade::io {

bool inflate_exactly(std::span<const std::byte> from, std::span<std::byte> into) {
  std::unique_ptr<libdeflate_decompressor, void (*)(libdeflate_decompressor*)> inflater(
      libdeflate_alloc_decompressor(), libdeflate_free_decompressor);
  if (!inflater) throw std::bad_alloc();
  std::size_t taken = 0;
  std::size_t made = 0;
  auto result = libdeflate_deflate_decompress_ex(inflater.get(), from.data(), from.size(),
                                                 into.data(), into.size(), &taken, &made);
  return result == LIBDEFLATE_SUCCESS && taken == from.size() && made == into.size();
}

std::uint32_t crc32_of(std::span<const std::byte> bytes, std::uint32_t before) noexcept {
  return libdeflate_crc32(before, bytes.data(), bytes.size());
}

std::uint32_t copy_with_crc32(std::span<const std::byte> from, std::byte* to,
                              std::uint32_t before) noexcept {
  constexpr std::size_t piece = std::size_t{32} << 10;  // stays in the first-level cache
  while (!from.empty()) {
    auto part = from.first(std::min(piece, from.size()));
    std::memcpy(to, part.data(), part.size());
    before = libdeflate_crc32(before, to, part.size());
    to += part.size();
    from = from.subspan(part.size());
  }
  return before;
}

}  // namespace lade::io
