// The frame size of an AV1 stream, read from its sequence headers. Numbers of sections refer to the
// "AV1 Bitstream & Decoding Process Specification".

#pragma once

#include <lade/support/byte_view.hpp>

#include <array>
#include <cstddef>
#include <cstdint>

namespace lade::media {

struct av1_size {
  std::uint32_t width = 0;
  std::uint32_t height = 0;

  std::uint64_t pixels() const noexcept { return std::uint64_t{width} * height; }
};

// Parses samples of AV1, each a sequence of OBUs, without decoding them. No frame may be larger
// than its sequence header states (6.8.4).
class av1_sizes {
 public:
  // `most_obus`: how many OBUs to parse; later ones are ignored. An OBU may have two bytes, and a
  // file may refer to the same bytes any number of times.
  explicit av1_sizes(std::uint64_t most_obus) : obus_left_(most_obus) {}

  // Parses the next part of a sample. Samples may be cut anywhere.
  void add(support::byte_view part) noexcept;

  // Ends the sample: the next part belongs to another one.
  void end_sample() noexcept;

  // The size in the sequence header with the most pixels; 0 x 0 if there was none.
  const av1_size& largest() const noexcept { return largest_; }

  bool has_too_many_obus() const noexcept { return obus_left_ == 0; }

 private:
  void add_to_header(std::uint8_t byte) noexcept;
  std::size_t add_to_payload(support::byte_view part) noexcept;
  bool is_sequence_header() const noexcept;
  void begin_header() noexcept;
  void begin_payload(std::uint64_t size) noexcept;
  void end_payload() noexcept;

  // The bytes of an OBU's header with the longest size field, or of a sequence header up to its
  // frame size: with 32 operating points, that takes 356 bytes.
  std::array<std::byte, 512> kept_{};
  std::size_t kept_bytes_ = 0;
  std::uint8_t first_ = 0;  // first byte of the OBU's header
  bool in_payload_ = false;
  std::uint64_t payload_left_ = 0;
  std::uint64_t obus_left_;
  av1_size largest_;
};

// The frame size in the payload of a sequence header (5.5.1); 0 x 0 if the payload ends before it.
av1_size av1_sequence_size(support::byte_view payload) noexcept;

}  // namespace lade::media
