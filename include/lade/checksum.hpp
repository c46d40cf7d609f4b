// Incremental checksums: CRC32C (of TFRecord files, object stores and network protocols) and
// CRC64/NVME (of objects in S3).

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace lade {

// CRC-32C (Castagnoli), as in RFC 3720: of "123456789" it is 0xe3069283. Uses the processor's
// instruction if it has one (SSE4.2), for about 8 bytes per cycle.
class crc32c {
 public:
  crc32c() = default;
  explicit crc32c(std::span<const std::byte> bytes) noexcept { update(bytes); }

  void update(std::span<const std::byte> bytes) noexcept;

  // The checksum of all bytes so far.
  std::uint32_t value() const noexcept { return ~state_; }

 private:
  std::uint32_t state_ = ~std::uint32_t{0};
};

// CRC-64/NVME, as in the NVM Express specification: of "123456789" it is 0xae8b14860a799888. Uses
// tables, for about 1 to 2 GB/s.
class crc64nvme {
 public:
  crc64nvme() = default;
  explicit crc64nvme(std::span<const std::byte> bytes) noexcept { update(bytes); }

  void update(std::span<const std::byte> bytes) noexcept;

  std::uint64_t value() const noexcept { return ~state_; }

 private:
  std::uint64_t state_ = ~std::uint64_t{0};
};

namespace detail {

// One step of crc32c, by tables or by the processor's instruction, which requires SSE4.2.
std::uint32_t crc32c_by_tables(std::uint32_t state, std::span<const std::byte> bytes) noexcept;
std::uint32_t crc32c_by_sse42(std::uint32_t state, std::span<const std::byte> bytes) noexcept;
bool has_sse42() noexcept;

}  // namespace detail

}  // namespace lade
