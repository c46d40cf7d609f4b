#include "xml.hpp"

#include <lade/error.hpp>
#include <lade/support/utf8.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <utility>

#include <fmt/format.h>

namespace lade::io::http {

void xml_text::refuse(std::string_view reason) const {
  throw error(errc::invalid_data, doing_, reason);
}

// The start of the content of the first element of that name, and whether the element is empty
// ("<a/>").
static std::optional<std::pair<std::size_t, bool>> content_begin(std::string_view text,
                                                                 std::string_view name) noexcept {
  for (auto at = text.find('<'); at != text.npos; at = text.find('<', at + 1)) {
    auto rest = text.substr(at + 1);
    if (!rest.starts_with(name)) continue;
    rest.remove_prefix(name.size());
    if (rest.empty() || std::string_view("> /\t\r\n").find(rest[0]) == std::string_view::npos)
      continue;
    auto end = text.find('>', at);
    if (end == text.npos) return std::nullopt;
    return std::pair(end + 1, text[end - 1] == '/');
  }
  return std::nullopt;
}

std::optional<xml_text> xml_text::take(std::string_view name) {
  auto begin = content_begin(text_, name);
  if (!begin) return std::nullopt;
  text_.remove_prefix(begin->first);
  if (begin->second) return xml_text({}, doing_);
  auto closing = fmt::format("</{}>", name);
  auto end = text_.find(closing);
  if (end == text_.npos) refuse(fmt::format("no end of <{}>", name));
  xml_text content(text_.substr(0, end), doing_);
  text_.remove_prefix(end + closing.size());
  return content;
}

std::optional<xml_text> xml_text::find(std::string_view name) const {
  auto rest = *this;
  return rest.take(name);
}

xml_text xml_text::require(std::string_view name) const {
  auto found = find(name);
  if (!found) refuse("no " + std::string(name));
  return *found;
}

// XML allows neither surrogates nor zero.
static bool is_character(std::uint32_t code) {
  return code > 0 && code <= 0x10ffff && (code < 0xd800 || code >= 0xe000);
}

// Appends the character of "amp", "#38" or "#x26". Returns false for other names.
static bool append_entity(std::string& to, std::string_view name) {
  constexpr std::array<std::pair<std::string_view, char>, 5> entities{
      {{"amp", '&'}, {"lt", '<'}, {"gt", '>'}, {"quot", '"'}, {"apos", '\''}}};
  for (auto& [known, stands_for] : entities)
    if (name == known) {
      to += stands_for;
      return true;
    }
  if (!name.starts_with('#')) return false;
  bool is_hexadecimal = name.starts_with("#x");
  name.remove_prefix(is_hexadecimal ? 2 : 1);
  std::uint32_t code = 0;
  auto* end = name.data() + name.size();
  auto [last, failure] = std::from_chars(name.data(), end, code, is_hexadecimal ? 16 : 10);
  if (failure != std::errc() || last != end || !is_character(code)) return false;
  support::append_utf8(to, code);
  return true;
}

std::string xml_text::plain() const {
  std::string result;
  auto rest = text_;
  while (true) {
    auto begin = std::min(rest.find('&'), rest.size());
    result += rest.substr(0, begin);
    rest.remove_prefix(begin);
    if (rest.empty()) return result;
    auto end = rest.find(';');
    if (end == rest.npos || !append_entity(result, rest.substr(1, end - 1)))
      refuse("an entity that XML does not have");
    rest.remove_prefix(end + 1);
  }
}

std::string xml_text::value(std::string_view name) const {
  auto found = find(name);
  return found ? found->plain() : std::string();
}

}  // namespace lade::io::http
