#include "stated_length.hpp"

#include "box_headers.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace lade::media {

// The first bytes of a structure in a file.
struct file_start {
  std::array<std::byte, 16> bytes{};
  std::size_t size = 0;  // fewer at the end of the file

  std::uint64_t at(std::size_t i) const noexcept {
    return std::to_integer<std::uint64_t>(bytes[i]);
  }
  std::string_view text() const noexcept {
    return {reinterpret_cast<const char*>(bytes.data()), size};
  }
};

static file_start read_file_start(byte_input& file, std::uint64_t offset) {
  file_start start;
  start.size = file.read(start.bytes, offset);
  return start;
}

// The most parts of a file to examine; each may cost a request.
static std::size_t most_parts(const byte_input& file) noexcept {
  return file.is_in_memory() ? SIZE_MAX : 16;
}

// An AVI file of more than 1 GiB is a sequence of RIFF chunks, each with its size first (Microsoft,
// "AVI RIFF File Reference"; OpenDML AVI 1.02).
static std::optional<std::uint64_t> riff_bytes(byte_input& file) {
  const auto most = most_parts(file);
  std::uint64_t end = 0;
  for (std::size_t i = 0; i < most && end < file.size(); ++i) {
    const auto start = read_file_start(file, end);
    if (start.size < 8 || start.text().substr(0, 4) != "RIFF") break;
    const auto size = start.at(4) | start.at(5) << 8 | start.at(6) << 16 | start.at(7) << 24;
    if (size == 0 || size == 0xffffffff) return std::nullopt;
    end += 8 + size;
  }
  if (end == 0) return std::nullopt;
  return end;
}

// An EBML element: an ID of 1 to 4 bytes, and the size of its content in 1 to 8 bytes (RFC 8794, 4
// and 5). The number of leading zeros is the number of further bytes. A size of all ones: unknown.
struct ebml_element {
  std::uint64_t id = 0;
  std::uint64_t header_bytes = 0;
  std::optional<std::uint64_t> content_bytes;
};

static std::optional<ebml_element> parse_ebml(const file_start& start) {
  const auto length_at = [&](std::size_t i) {
    return static_cast<std::size_t>(std::countl_zero(static_cast<std::uint8_t>(start.at(i)))) + 1;
  };
  ebml_element element;
  const auto id_bytes = length_at(0);
  if (id_bytes > 4 || start.size <= id_bytes) return std::nullopt;
  for (std::size_t i = 0; i < id_bytes; ++i) element.id = element.id << 8 | start.at(i);
  const auto size_bytes = length_at(id_bytes);
  if (size_bytes > 8 || start.size < id_bytes + size_bytes) return std::nullopt;
  std::uint64_t size = start.at(id_bytes) & (0xffU >> size_bytes);
  for (std::size_t i = 1; i < size_bytes; ++i) size = size << 8 | start.at(id_bytes + i);
  element.header_bytes = id_bytes + size_bytes;
  const auto unknown = (std::uint64_t{1} << (7 * size_bytes)) - 1;
  if (size != unknown) element.content_bytes = size;
  return element;
}

// A Matroska file is an EBML header and a segment (RFC 9559, 4.5).
static std::optional<std::uint64_t> matroska_bytes(byte_input& file) {
  constexpr std::uint64_t header_id = 0x1a45dfa3;
  constexpr std::uint64_t segment_id = 0x18538067;
  const auto header = parse_ebml(read_file_start(file, 0));
  if (!header || header->id != header_id || !header->content_bytes) return std::nullopt;
  const auto at = header->header_bytes + *header->content_bytes;
  const auto segment = parse_ebml(read_file_start(file, at));
  if (!segment || segment->id != segment_id || !segment->content_bytes) return std::nullopt;
  return at + segment->header_bytes + *segment->content_bytes;
}

// Files of boxes begin with one of these box types (ISO/IEC 14496-12; "QuickTime File Format").
static bool begins_with_box(const file_start& start) noexcept {
  constexpr std::array<std::string_view, 7> known{"ftyp", "styp", "moov", "mdat",
                                                  "free", "skip", "wide"};
  return start.size >= 8 &&
         std::find(known.begin(), known.end(), start.text().substr(4, 4)) != known.end();
}

static std::uint64_t boxes_bytes(byte_input& file) {
  const auto most = most_parts(file);
  constexpr std::size_t least_box = 8;
  std::uint64_t end = 0;
  for (std::size_t i = 0; i < most && end + least_box <= file.size(); ++i) {
    const auto start = read_file_start(file, end);
    const auto box = box_start_of(std::span(start.bytes).first(start.size), file.size() - end);
    if (!box) return end;
    end += box->bytes;
    if (end < box->bytes) return file.size();  // overflow: invalid
  }
  return end;
}

// An Ogg file is a sequence of pages: a header of 27 bytes, the lengths of its segments in one byte
// each, and their bytes (RFC 3533, 6).
struct ogg_page {
  static constexpr std::size_t header_bytes = 27;
  static constexpr std::size_t most_bytes = header_bytes + 255 + 255 * 255;

  unsigned flags = 0;
  std::uint32_t stream = 0;
  std::size_t bytes = 0;

  bool is_first() const noexcept { return (flags & 2) != 0; }
  bool is_last() const noexcept { return (flags & 4) != 0; }
};

// Parses the page header at the start of `from`; empty if it is not complete.
static std::optional<ogg_page> parse_ogg_page(std::span<const std::byte> from) {
  const auto byte_at = [&](std::size_t i) { return std::to_integer<std::uint32_t>(from[i]); };
  if (from.size() < ogg_page::header_bytes) return std::nullopt;
  const std::size_t segments = byte_at(ogg_page::header_bytes - 1);
  if (from.size() < ogg_page::header_bytes + segments) return std::nullopt;
  ogg_page page;
  page.flags = byte_at(5);
  page.stream = byte_at(14) | byte_at(15) << 8 | byte_at(16) << 16 | byte_at(17) << 24;
  page.bytes = ogg_page::header_bytes + segments;
  for (std::size_t i = 0; i < segments; ++i) page.bytes += byte_at(ogg_page::header_bytes + i);
  return page;
}

static std::vector<std::byte> read_at_most(byte_input& file, std::uint64_t offset,
                                           std::size_t bytes) {
  std::vector<std::byte> content(std::min<std::uint64_t>(file.size() - offset, bytes));
  content.resize(file.read(content, offset));
  return content;
}

static std::string_view text_of(std::span<const std::byte> bytes) noexcept {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// The last page, and whether it is complete.
static std::optional<std::pair<ogg_page, bool>> last_ogg_page(byte_input& file) {
  const auto bytes = std::min<std::uint64_t>(file.size(), ogg_page::most_bytes);
  const auto tail = read_at_most(file, file.size() - bytes, ogg_page::most_bytes);
  const auto at = text_of(tail).rfind("OggS");
  if (at == std::string_view::npos) return std::nullopt;
  const auto page = parse_ogg_page(std::span(tail).subspan(at));
  if (!page) return std::nullopt;
  return std::pair(*page, page->bytes <= tail.size() - at);
}

static bool has_last_page(byte_input& file) {
  const auto last = last_ogg_page(file);
  return last && last->second && last->first.is_last();
}

// Whether a stream starts after a page that is not a first page, or bytes are not a page. Reads the
// headers of all pages.
static bool begins_streams_later(byte_input& file) {
  bool has_begun = false;
  for (std::uint64_t at = 0; at < file.size();) {
    const auto head = read_at_most(file, at, ogg_page::header_bytes + 255);
    const auto page = text_of(head).starts_with("OggS") ? parse_ogg_page(head) : std::nullopt;
    if (!page || (has_begun && page->is_first())) return true;
    has_begun = !page->is_first();
    at += page->bytes;
  }
  return false;
}

// All streams of an Ogg file start at its beginning, each with a unique number (RFC 3533, 4). But
// joined files of one writer may have equal numbers.
bool is_chained_ogg(byte_input& file) {
  if (file.is_in_memory()) return begins_streams_later(file);
  const auto last = last_ogg_page(file);
  const auto head = read_at_most(file, 0, ogg_page::most_bytes);
  for (std::span rest(head); last && text_of(rest).starts_with("OggS");) {
    const auto page = parse_ogg_page(rest);
    if (!page || !page->is_first()) return true;
    if (page->stream == last->first.stream) return false;
    rest = rest.subspan(std::min(page->bytes, rest.size()));
  }
  return true;
}

// A CAF file is a header of 8 bytes and a sequence of chunks: a type of 4 bytes and the size of the
// content in 8. The last chunk may be data of size -1, which extend to the end of the file (Apple,
// "Core Audio Format Specification").
struct caf_data {
  std::uint64_t end = 0;
  bool has_size = true;
};

static std::optional<caf_data> find_caf_data(byte_input& file) {
  constexpr std::size_t header_bytes = 12;
  const auto most = most_parts(file);
  std::uint64_t at = 8;
  for (std::size_t i = 0; i < most && at < file.size(); ++i) {
    const auto start = read_file_start(file, at);
    if (start.size < header_bytes) break;
    std::uint64_t bytes = 0;
    for (std::size_t k = 4; k < header_bytes; ++k) bytes = bytes << 8 | start.at(k);
    const bool is_data = start.text().substr(0, 4) == "data";
    if (is_data && bytes == UINT64_MAX) return caf_data{.end = file.size(), .has_size = false};
    if (bytes > INT64_MAX) break;
    at += header_bytes + bytes;
    if (is_data) return caf_data{.end = at};
  }
  return std::nullopt;
}

static bool is_caf(const file_start& start) noexcept { return start.text().starts_with("caff"); }

bool has_unknown_size(byte_input& file) {
  if (!is_caf(read_file_start(file, 0))) return false;
  const auto data = find_caf_data(file);
  return data && !data->has_size;
}

static std::optional<std::uint64_t> caf_bytes(byte_input& file) {
  const auto data = find_caf_data(file);
  if (!data) return std::nullopt;
  return data->end;
}

static std::optional<std::uint64_t> stated_file_bytes(byte_input& file, const file_start& start) {
  if (begins_with_box(start)) return boxes_bytes(file);
  if (start.text().starts_with("RIFF")) return riff_bytes(file);
  if (is_caf(start)) return caf_bytes(file);
  if (start.text().starts_with("\x1a\x45\xdf\xa3")) return matroska_bytes(file);
  return std::nullopt;
}

std::string missing_end_of(byte_input& file) {
  const auto start = read_file_start(file, 0);
  if (start.text().starts_with("OggS") && !has_last_page(file))
    return "it ends before the last page of its stream";
  const auto stated = stated_file_bytes(file, start);
  if (!stated || *stated <= file.size()) return {};
  return fmt::format("it has {} of the {} bytes that its header states", file.size(), *stated);
}

}  // namespace lade::media
