// The size of the frames of an AV1 stream, by its headers alone. "AV1 Bitstream & Decoding Process
// Specification" is quoted by its sections.

#pragma once

#include <lade/detail/common/byte_view.hpp>

#include <array>
#include <cstddef>
#include <cstdint>

namespace lade::media {

struct av1_size {
  std::uint32_t width = 0;
  std::uint32_t height = 0;

  std::uint64_t pixels() const noexcept { return std::uint64_t{width} * height; }
};

// Goes through samples of AV1, each a row of OBUs, without decoding them. No frame may be larger
// than the sequence header before it says (6.8.4).
class av1_sizes {
 public:
  // What follows `most_obus` OBUs is ignored: they may be of two bytes, and a file may name its
  // bytes any number of times.
  explicit av1_sizes(std::uint64_t most_obus) : obus_left_(most_obus) {}

  // The next part of a sample. Parts may be cut anywhere.
  void add(detail::byte_view part) noexcept;

  // What is added from now on belongs to another sample.
  void end_sample() noexcept;

  // That of the sequence header with most pixels; 0 x 0 if there was none.
  const av1_size& largest() const noexcept { return largest_; }

  bool has_too_many_obus() const noexcept { return obus_left_ == 0; }

 private:
  void add_to_header(std::uint8_t byte) noexcept;
  std::size_t add_to_payload(detail::byte_view part) noexcept;
  bool is_sequence_header() const noexcept;
  void begin_header() noexcept;
  void begin_payload(std::uint64_t size) noexcept;
  void end_payload() noexcept;

  // A header whose size field is as long as it may be; or a sequence header up to the size, of
  // which 32 operating points take 356 bytes.
  std::array<std::byte, 512> kept_{};
  std::size_t kept_bytes_ = 0;
  std::uint8_t first_ = 0;  // byte of the header
  bool in_payload_ = false;
  std::uint64_t payload_left_ = 0;
  std::uint64_t obus_left_;
  av1_size largest_;
};

// The size in the payload of a sequence header (5.5.1); 0 x 0 if it ends before that.
av1_size av1_sequence_size(detail::byte_view payload) noexcept;

}  // namespace lade::media
