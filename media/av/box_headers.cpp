#include "box_headers.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

namespace lade::media {

static constexpr std::size_t most_header_bytes = 16;

static std::uint64_t big_endian_at(std::span<const std::byte> bytes, std::size_t at,
                                   std::size_t count) noexcept {
  std::uint64_t value = 0;
  for (const auto byte : bytes.subspan(at, count))
    value = value << 8 | std::to_integer<std::uint64_t>(byte);
  return value;
}

std::optional<box_start> box_start_of(std::span<const std::byte> bytes, std::uint64_t left) {
  box_start box;
  if (bytes.size() < 8) return std::nullopt;
  box.bytes = big_endian_at(bytes, 0, 4);
  if (box.bytes == 1) {
    if (bytes.size() < most_header_bytes) return std::nullopt;
    box.header_bytes = most_header_bytes;
    box.bytes = big_endian_at(bytes, 8, 8);
  } else if (box.bytes == 0) {
    box.bytes = left;
  }
  if (box.bytes < box.header_bytes) return std::nullopt;
  const auto* type = reinterpret_cast<const char*>(bytes.data() + 4);
  box.is_media = std::string_view(type, 4) == "mdat";
  return box;
}

// For a recording in fragments of one second, the boxes of a day.
static constexpr std::size_t most_boxes = 1 << 18;

std::optional<box_headers> box_headers::of(const buffer& file) {
  box_headers result;
  result.file_bytes_ = file.size();
  bool has_media = false;
  for (std::size_t at = 0; at < file.size();) {
    const auto left = file.size() - at;
    const auto box = box_start_of(file.bytes().subspan(at), left);
    if (!box || box->bytes > left || result.parts_.size() == most_boxes) return std::nullopt;
    const auto kept = static_cast<std::size_t>(box->is_media ? box->header_bytes : box->bytes);
    result.parts_.push_back({at, file.slice(at, kept)});
    has_media = has_media || box->is_media;
    at += static_cast<std::size_t>(box->bytes);
  }
  if (!has_media) return std::nullopt;
  return result;
}

// Reads the start of the next box; the same read includes small boxes in between. The size of reads
// doubles every 16 reads, so that files of few boxes are read without excess.
static task<buffer> read_start(const byte_reader& from, std::uint64_t at, std::uint64_t left,
                               unsigned reads) {
  constexpr std::uint64_t least = 128;
  constexpr unsigned most_doubled = 9;  // 64 KiB
  const auto bytes = least << std::min(reads / 16, most_doubled);
  return from.read_at(at, static_cast<std::size_t>(std::min(bytes, left)));
}

task<std::optional<box_headers>> box_headers::read(std::shared_ptr<const byte_reader> from) {
  box_headers result;
  result.file_bytes_ = from->size();
  bool has_media = false;
  buffer known;  // bytes of the file from known_at on
  std::uint64_t known_at = 0;
  unsigned reads = 0;
  for (std::uint64_t at = 0; at < result.file_bytes_;) {
    const auto left = result.file_bytes_ - at;
    if (at < known_at ||
        at + std::min<std::uint64_t>(left, most_header_bytes) > known_at + known.size()) {
      known = co_await read_start(*from, at, left, reads++);
      known_at = at;
    }
    const auto skipped = static_cast<std::size_t>(at - known_at);
    const auto box = box_start_of(known.bytes().subspan(skipped), left);
    if (!box || box->bytes > left || result.parts_.size() == most_boxes) co_return std::nullopt;
    const auto kept = static_cast<std::size_t>(box->is_media ? box->header_bytes : box->bytes);
    buffer bytes;
    if (kept <= known.size() - skipped) {
      bytes = known.slice(skipped, kept);
    } else {
      bytes = co_await from->read_at(at, kept);
      ++reads;
    }
    result.parts_.push_back({at, std::move(bytes)});
    has_media = has_media || box->is_media;
    at += box->bytes;
  }
  if (!has_media) co_return std::nullopt;
  co_return std::move(result);
}

std::size_t box_headers::copy(std::span<std::byte> into, std::uint64_t offset) const {
  if (offset >= file_bytes_) return 0;
  const auto end = std::min<std::uint64_t>(offset + into.size(), file_bytes_);
  std::fill_n(into.begin(), end - offset, std::byte{0});
  const auto first = std::upper_bound(
      parts_.begin(), parts_.end(), offset,
      [](auto value, const auto& each) { return value < each.offset + each.bytes.size(); });
  for (auto each = first; each != parts_.end() && each->offset < end; ++each) {
    const auto from = std::max(offset, each->offset);
    const auto to = std::min<std::uint64_t>(end, each->offset + each->bytes.size());
    const auto* bytes = each->bytes.data() + (from - each->offset);
    std::copy_n(bytes, to - from, into.begin() + static_cast<std::ptrdiff_t>(from - offset));
  }
  return static_cast<std::size_t>(end - offset);
}

}  // namespace lade::media
