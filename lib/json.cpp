#include "utf8.hpp"

#include <lade/detail/json.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <system_error>

namespace lade::detail {

std::string json_of(std::string_view text) {
  constexpr std::string_view hex = "0123456789abcdef";
  std::string result = "\"";
  while (!text.empty()) {
    auto length = utf8_length(text);
    auto code = static_cast<unsigned char>(text.front());
    if (length == 0)
      result += "\\ufffd";
    else if (code == '"' || code == '\\')
      (result += '\\') += text.front();
    else if (code < 0x20)
      ((result += "\\u00") += hex[code >> 4]) += hex[code & 15];
    else
      result += text.substr(0, length);
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return result += '"';
}

std::string json_of(double number, int digits) {
  std::array<char, 400> text;  // the largest double has 309 digits before the point
  auto [end, failure] = std::to_chars(text.data(), text.data() + text.size(), number,
                                      std::chars_format::fixed, digits);
  return failure == std::errc() ? std::string(text.data(), end) : "null";
}

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
  std::string text;
  for (auto& [name, value] : members)
    text.append(text.empty() ? "{" : ",").append(json_of(name)).append(":").append(value);
  return text + "}";
}

std::string json_of(const lineage& positions) {
  std::string result;
  for (auto& range : positions.ranges()) {
    if (!result.empty()) result += ',';
    result += '[' + std::to_string(range.first) + ',' + std::to_string(range.last) + ']';
  }
  return "[" + result + "]";
}

}  // namespace lade::detail
