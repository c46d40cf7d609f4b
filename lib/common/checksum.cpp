#include <lade/checksum.hpp>

#include <array>
#include <bit>
#include <cstring>

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

namespace lade {

// tables[k][byte]: the contribution to a CRC of a byte that k bytes follow in its word. The
// polynomial is reflected: its lowest coefficient is the highest bit.
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

// Processes eight bytes at a time, since their table lookups are independent of each other.
template <class T>
static T crc_by_tables(const crc_tables<T>& tables, T state,
                       std::span<const std::byte> bytes) noexcept {
  while (std::endian::native == std::endian::little && bytes.size() >= 8) {
    std::uint64_t word = 0;
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

// The product of two polynomials modulo the one of CRC-32C. Reflected: the highest bit is the
// coefficient of 1.
static constexpr std::uint32_t crc32c_product(std::uint32_t a, std::uint32_t b) noexcept {
  std::uint32_t product = 0;
  for (; a != 0; a <<= 1) {
    if (a >> 31) product ^= b;
    b = (b >> 1) ^ (b & 1 ? 0x82f63b78 : 0);
  }
  return product;
}

// Tables that shift a CRC over a number of zero bytes, which multiplies it by x^(8 * bytes).
using crc32c_shift = std::array<std::array<std::uint32_t, 256>, 4>;

static constexpr crc32c_shift make_crc32c_shift(std::size_t bytes) {
  std::uint32_t power = 1u << 31;
  std::uint32_t square = 1u << 23;  // x^8
  for (; bytes > 0; bytes >>= 1) {
    if (bytes & 1) power = crc32c_product(power, square);
    square = crc32c_product(square, square);
  }
  crc32c_shift result{};
  for (std::uint32_t k = 0; k < 4; ++k)
    for (std::uint32_t byte = 0; byte < 256; ++byte)
      result[k][byte] = crc32c_product(byte << (8 * k), power);
  return result;
}

static std::uint32_t shifted(const crc32c_shift& by, std::uint32_t crc) noexcept {
  return by[0][crc & 255] ^ by[1][(crc >> 8) & 255] ^ by[2][(crc >> 16) & 255] ^ by[3][crc >> 24];
}

static std::uint64_t word_at(const std::byte* from) noexcept {
  std::uint64_t word = 0;
  std::memcpy(&word, from, 8);
  return word;
}

// Processes three parts in parallel: the instruction has a latency of three cycles and a throughput
// of one per cycle.
template <std::size_t Bytes>
[[gnu::target("sse4.2")]] static std::uint32_t crc32c_of_thirds(
    std::uint32_t state, std::span<const std::byte>& bytes) noexcept {
  static constinit const auto shift = make_crc32c_shift(Bytes);
  for (; bytes.size() >= 3 * Bytes; bytes = bytes.subspan(3 * Bytes)) {
    std::uint64_t first = state, second = 0, third = 0;
    auto* at = bytes.data();
    for (std::size_t i = 0; i < Bytes; i += 8) {
      first = _mm_crc32_u64(first, word_at(at + i));
      second = _mm_crc32_u64(second, word_at(at + Bytes + i));
      third = _mm_crc32_u64(third, word_at(at + 2 * Bytes + i));
    }
    auto two =
        shifted(shift, static_cast<std::uint32_t>(first)) ^ static_cast<std::uint32_t>(second);
    state = shifted(shift, two) ^ static_cast<std::uint32_t>(third);
  }
  return state;
}

[[gnu::target("sse4.2")]] std::uint32_t detail::crc32c_by_sse42(
    std::uint32_t state, std::span<const std::byte> bytes) noexcept {
  state = crc32c_of_thirds<4096>(state, bytes);
  std::uint64_t crc = crc32c_of_thirds<256>(state, bytes);
  for (; bytes.size() >= 8; bytes = bytes.subspan(8))
    crc = _mm_crc32_u64(crc, word_at(bytes.data()));
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
