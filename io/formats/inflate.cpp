#include "inflate.hpp"

#include <libdeflate.h>

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

std::uint32_t crc32_of(std::span<const std::byte> bytes) noexcept {
  return libdeflate_crc32(0, bytes.data(), bytes.size());
}

}  // namespace lade::io
