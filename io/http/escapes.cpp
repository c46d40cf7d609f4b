#include "escapes.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <system_error>
#include <utility>

namespace lade::io::http {

void unescaped_text::replace(std::string& text, std::size_t at, std::size_t bytes) const {
  text.replace(offsets[at], offsets[at + bytes] - offsets[at], redaction_mark);
}

unescaped_text verbatim(std::string_view text) {
  unescaped_text unescaped{std::string(text), {}};
  for (std::size_t i = 0; i <= text.size(); ++i) unescaped.offsets.push_back(i);
  return unescaped;
}

// An escape at the start of a text: its character and its length.
struct found_escape {
  char plain;
  std::size_t bytes;
};

// The character with a number in `base`. All of `digits` must be digits, and the number ASCII.
static std::optional<char> ascii_of(std::string_view digits, int base) noexcept {
  unsigned value = 0;
  auto [end, failure] = std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
  bool is_ascii = failure == std::errc() && end == digits.data() + digits.size() && value < 128;
  if (digits.empty() || !is_ascii) return std::nullopt;
  return static_cast<char>(value);
}

static std::optional<found_escape> percent_escape(std::string_view text) noexcept {
  auto plain = text.size() < 3 ? std::nullopt : ascii_of(text.substr(1, 2), 16);
  if (!plain) return std::nullopt;
  return found_escape{*plain, 3};
}

static std::optional<found_escape> json_escape(std::string_view text) noexcept {
  if (text.size() < 2) return std::nullopt;
  constexpr std::string_view marks = "\"\\/bfnrt", plain = "\"\\/\b\f\n\r\t";
  if (auto at = marks.find(text[1]); at != marks.npos) return found_escape{plain[at], 2};
  auto number = text[1] == 'u' && text.size() >= 6 ? ascii_of(text.substr(2, 4), 16) : std::nullopt;
  if (!number) return std::nullopt;
  return found_escape{*number, 6};
}

static std::optional<char> named_reference(std::string_view name) noexcept {
  constexpr std::array<std::pair<std::string_view, char>, 5> known{
      {{"amp", '&'}, {"lt", '<'}, {"gt", '>'}, {"quot", '"'}, {"apos", '\''}}};
  for (auto& [each, plain] : known)
    if (each == name) return plain;
  return std::nullopt;
}

static constexpr std::size_t longest_reference = 10;

static std::optional<found_escape> xml_escape(std::string_view text) noexcept {
  auto end = text.substr(0, longest_reference).find(';');
  if (end == text.npos) return std::nullopt;
  auto name = text.substr(1, end - 1);
  bool is_hexadecimal = name.starts_with("#x") || name.starts_with("#X");
  auto plain = is_hexadecimal          ? ascii_of(name.substr(2), 16)
               : name.starts_with("#") ? ascii_of(name.substr(1), 10)
                                       : named_reference(name);
  if (!plain) return std::nullopt;
  return found_escape{*plain, end + 1};
}

static std::optional<found_escape> escape_at(std::string_view text) noexcept {
  switch (text[0]) {
    case '%': return percent_escape(text);
    case '\\': return json_escape(text);
    case '&': return xml_escape(text);
    default: return std::nullopt;
  }
}

unescaped_text unescape(std::string_view text) {
  unescaped_text unescaped;
  for (std::size_t at = 0; at < text.size();) {
    auto escape = escape_at(text.substr(at)).value_or(found_escape{text[at], 1});
    unescaped.plain += escape.plain;
    unescaped.offsets.push_back(at);
    at += escape.bytes;
  }
  unescaped.offsets.push_back(text.size());
  return unescaped;
}

std::size_t cut_escape_bytes(std::string_view text) noexcept {
  auto last = text.substr(text.size() - std::min(text.size(), longest_reference - 1));
  auto begin = last.find_last_of("%\\&");
  if (begin == last.npos) return 0;
  auto rest = last.substr(begin);
  auto longest = rest[0] == '%' ? 3u : rest[0] == '&' ? longest_reference : 6u;
  bool is_whole = rest.size() >= longest || escape_at(rest) || rest.find(';') != rest.npos;
  return is_whole ? 0 : rest.size();
}

}  // namespace lade::io::http
