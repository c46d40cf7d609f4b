#include <lade/checksum.hpp>

#include <array>
#include <bit>
#include <cstring>

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

namespace lade {

// What each byte does to a CRC, k bytes before the end of a word. The polynomial is reflected: its
// lowest coefficient is the highest bit.
template <class T>
using crc_tables = std::array<std::array<T, 256>, 8>;

template <class T>
static constexpr crc_tables<T> make_crc_tables(T polynomial) {
  crc_tables<T> tables{};
  for (unsigned byte = 0; byte < 256; ++byte) {
    T crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ (crc & 1 ? polynomial : 0);
    tables[0][byte] = crc;
  }
  for (std::size_t k = 1; k < 8; ++k)
    for (unsigned byte = 0; byte < 256; ++byte) {
      T before = tables[k - 1][byte];
      tables[k][byte] = (before >> 8) ^ tables[0][before & 255];
    }
  return tables;
}

// Eight bytes at a time: the tables of a word's bytes do not wait for each other.
template <class T>
static T crc_by_tables(const crc_tables<T>& tables, T state,
                       std::span<const std::byte> bytes) noexcept {
  while (std::endian::native == std::endian::little && bytes.size() >= 8) {
    std::uint64_t word;
    std::memcpy(&word, bytes.data(), 8);
    word ^= state;
    state = 0;
    for (std::size_t k = 0; k < 8; ++k) state ^= tables[7 - k][(word >> (8 * k)) & 255];
    bytes = bytes.subspan(8);
  }
  for (auto byte : bytes)
    state = (state >> 8) ^ tables[0][(state ^ static_cast<std::uint8_t>(byte)) & 255];
  return state;
}

static constinit const auto crc32c_tables = make_crc_tables<std::uint32_t>(0x82f63b78);
static constinit const auto crc64nvme_tables = make_crc_tables<std::uint64_t>(0x9a6c9329ac4bc9b5);

std::uint32_t detail::crc32c_by_tables(std::uint32_t state,
                                       std::span<const std::byte> bytes) noexcept {
  return crc_by_tables(crc32c_tables, state, bytes);
}

#if defined(__x86_64__)

bool detail::has_sse42() noexcept { return __builtin_cpu_supports("sse4.2") != 0; }

[[gnu::target("sse4.2")]] std::uint32_t detail::crc32c_by_sse42(
    std::uint32_t state, std::span<const std::byte> bytes) noexcept {
  std::uint64_t crc = state;
  for (; bytes.size() >= 8; bytes = bytes.subspan(8)) {
    std::uint64_t word;
    std::memcpy(&word, bytes.data(), 8);
    crc = _mm_crc32_u64(crc, word);
  }
  auto narrow = static_cast<std::uint32_t>(crc);
  for (auto byte : bytes) narrow = _mm_crc32_u8(narrow, static_cast<std::uint8_t>(byte));
  return narrow;
}

#else

bool detail::has_sse42() noexcept { return false; }

std::uint32_t detail::crc32c_by_sse42(std::uint32_t state,
                                      std::span<const std::byte> bytes) noexcept {
  return crc32c_by_tables(state, bytes);
}

#endif

void crc32c::update(std::span<const std::byte> bytes) noexcept {
  static const auto best = detail::has_sse42() ? detail::crc32c_by_sse42 : detail::crc32c_by_tables;
  state_ = best(state_, bytes);
}

void crc64nvme::update(std::span<const std::byte> bytes) noexcept {
  state_ = crc_by_tables(crc64nvme_tables, state_, bytes);
}

}  // namespace lade
