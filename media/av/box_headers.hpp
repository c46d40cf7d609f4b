// Reads the headers of MP4 and QuickTime files: all boxes without their media data.

#pragma once

#include "byte_input.hpp"

#include <lade/buffer.hpp>
#include <lade/byte_reader.hpp>
#include <lade/task.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace lade::media {

// The beginning of a box.
struct box_start {
  std::uint64_t header_bytes = 8;
  std::uint64_t bytes = 0;  // includes the header
  bool is_media = false;
};

// A box starts with a 32-bit size and a type. Size 1: a 64-bit size follows the type. Size 0: the
// box extends to the end of the file, which has `left` bytes (ISO/IEC 14496-12, 4.2). Returns
// nothing if no box starts at `bytes`.
std::optional<box_start> box_start_of(std::span<const std::byte> bytes, std::uint64_t left);

// The boxes of a file without the contents of media data boxes (mdat). Copies share their memory.
class box_headers {
 public:
  // Return nothing if the file does not consist of boxes, has no media data, or has more than
  // 262,144 boxes. `read` reads only the headers, into memory of the caller's pool, and throws the
  // reader's errors.
  static std::optional<box_headers> of(const buffer& file);
  static task<std::optional<box_headers>> read(std::shared_ptr<const byte_reader> from);

  std::uint64_t file_bytes() const noexcept { return file_bytes_; }

  // Copies bytes of the file from `offset` on, with zeros for media data. Returns the number of
  // bytes: fewer only at the end.
  std::size_t copy(std::span<std::byte> into, std::uint64_t offset) const;

 private:
  struct part {
    std::uint64_t offset = 0;
    buffer bytes;
  };

  std::uint64_t file_bytes_ = 0;
  std::vector<part> parts_;  // sorted by offset
};

// Headers as input of FFmpeg's demuxers.
class headers_input final : public byte_input {
 public:
  explicit headers_input(box_headers headers) noexcept : headers_(std::move(headers)) {}

  std::uint64_t size() const override { return headers_.file_bytes(); }
  std::size_t read(std::span<std::byte> into, std::uint64_t offset) override {
    return headers_.copy(into, offset);
  }

 private:
  box_headers headers_;
};

}  // namespace lade::media
