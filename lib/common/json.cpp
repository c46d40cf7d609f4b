#include <lade/support/json.hpp>
#include <lade/support/utf8.hpp>

#include <algorithm>

#include <fmt/format.h>

namespace lade::support {

// `escaped`: returns the replacement for a byte that is not UTF-8.
template <class Escape>
static std::string json_quoted(std::string_view text, Escape escaped) {
  std::string result = "\"";
  while (!text.empty()) {
    auto length = utf8_length(text);
    auto code = static_cast<unsigned char>(text.front());
    if (length == 0)
      result += escaped(code);
    else if (code == '"' || code == '\\')
      (result += '\\') += text.front();
    else if (code < 0x20)
      result += fmt::format("\\u{:04x}", code);
    else
      result += text.substr(0, length);
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return result += '"';
}

std::string json_of(std::string_view text) {
  return json_quoted(text, [](unsigned char) { return "\\ufffd"; });
}

std::string json_of_bytes(std::string_view text) {
  return json_quoted(text, [](unsigned char byte) { return fmt::format("\\udc{:02x}", byte); });
}

std::string json_of(double number, int digits) { return fmt::format("{:.{}f}", number, digits); }

std::string json_array(std::span<const std::string> values) {
  std::string text = "[";
  for (auto& value : values) {
    if (text.size() > 1) text += ',';
    text += value;
  }
  text += ']';
  return text;
}

std::string json_object(std::span<const std::pair<const char*, std::string>> members) {
  std::string text = "{";
  for (auto& [name, value] : members)
    text.append(text.size() == 1 ? "" : ",").append(json_of(name)).append(":").append(value);
  return text + "}";
}

std::string json_of(const lineage& positions) {
  std::string result;
  for (auto& range : positions.ranges()) {
    if (!result.empty()) result += ',';
    result += fmt::format("[{},{}]", range.first, range.last);
  }
  return "[" + result + "]";
}

}  // namespace lade::support
