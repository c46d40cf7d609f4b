#include <lade/detail/json.hpp>

namespace lade::detail {

std::string json_of(std::string_view text) {
  constexpr std::string_view hex = "0123456789abcdef";
  std::string result = "\"";
  for (char c : text) {
    auto code = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\')
      (result += '\\') += c;
    else if (code < 0x20)
      ((result += "\\u00") += hex[code >> 4]) += hex[code & 15];
    else
      result += c;
  }
  return result += '"';
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
