#include "ranges.hpp"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

namespace lade::io::http {

std::string range_text(const byte_range& range) {
  if (range.bytes == byte_range::to_end) return fmt::format("{}-", range.offset);
  return fmt::format("{}-{}", range.offset, range.offset + range.bytes - 1);
}

byte_range rest_of(const byte_range& range, std::size_t filled) noexcept {
  auto bytes = range.bytes == byte_range::to_end ? range.bytes : range.bytes - filled;
  return {range.offset + filled, bytes};
}

bool is_strong(std::string_view etag) noexcept {
  return etag.size() > 2 && etag.starts_with('"') && etag.ends_with('"');
}

std::string_view opaque_tag(std::string_view etag) noexcept {
  return is_strong(etag) ? etag.substr(1, etag.size() - 2) : std::string_view();
}

std::string with_quotes(const std::string& etag) {
  return etag.empty() ? etag : "\"" + etag + "\"";
}

// The number after the slash of "bytes 0-499/1234", or the length of the whole body.
std::optional<std::uint64_t> object_bytes(const header_list& headers) noexcept {
  auto text = header_value(headers, "content-range");
  if (text.empty())
    text = header_value(headers, "content-length");
  else
    text.remove_prefix(std::min(text.rfind('/'), text.size() - 1) + 1);
  std::uint64_t bytes = 0;
  auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), bytes);
  if (text.empty() || failure != std::errc() || end != text.data() + text.size())
    return std::nullopt;
  return bytes;
}

// Removes a number from the front of a text, and returns it.
static std::optional<std::uint64_t> take_number(std::string_view& text) noexcept {
  std::uint64_t value = 0;
  auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

static bool take_prefix(std::string_view& text, std::string_view prefix) noexcept {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

// Parses "bytes 0-499/1234" or "bytes 0-499/*" (RFC 9110, section 14.4).
std::optional<std::uint64_t> part_bytes(const response_head& head,
                                        const byte_range& requested) noexcept {
  auto text = head.value("content-range");
  if (head.status != 206 || !take_prefix(text, "bytes ")) return std::nullopt;
  auto first = take_number(text);
  auto last = take_prefix(text, "-") ? take_number(text) : std::nullopt;
  if (!first || !last || !take_prefix(text, "/") || *last < *first || first != requested.offset)
    return std::nullopt;
  auto bytes = *last - *first + 1;
  if (bytes == requested.bytes) return bytes;
  auto total = take_number(text);
  bool is_rest = total ? *last + 1 == *total : requested.bytes == byte_range::to_end;
  return is_rest && bytes < requested.bytes ? std::optional(bytes) : std::nullopt;
}

bool is_of_no_bytes(const response_head& head) noexcept {
  return head.status == 416 && head.value("content-range") == "bytes */0";
}

// A status of 416 with "bytes */1234" (RFC 9110, section 14.4).
bool ends_at(const response_head& head, std::uint64_t offset) noexcept {
  auto text = head.value("content-range");
  return head.status == 416 && take_prefix(text, "bytes */") && take_number(text) == offset;
}

}  // namespace lade::io::http
