#include <lade/url.hpp>

#include <algorithm>
#include <array>

namespace lade {

// RFC 3986, section 3.1.
std::string_view scheme_of(std::string_view name) noexcept {
  auto end = name.find("://");
  if (end == 0 || end == std::string_view::npos) return {};
  auto scheme = name.substr(0, end);
  auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  bool good = is_letter(scheme[0]) && std::ranges::all_of(scheme, [&](char c) {
                return is_letter(c) || (c >= '0' && c <= '9') || c == '+' || c == '-' || c == '.';
              });
  return good ? scheme : std::string_view();
}

static bool is_short_number(std::string_view value) noexcept {
  return value.size() <= 10 &&
         std::ranges::all_of(value, [](char c) { return c >= '0' && c <= '9'; });
}

// Parameters of the S3 interface whose values are names of objects or markers.
static bool names_objects(std::string_view parameter) noexcept {
  constexpr std::array<std::string_view, 8> names{"delimiter",   "encoding-type", "prefix",
                                                  "start-after", "uploadId",      "uploads",
                                                  "versionId",   "fetch-owner"};
  return std::ranges::find(names, parameter) != names.end();
}

static std::string query_without_secrets(std::string_view query) {
  std::string shown;
  while (!query.empty()) {
    auto parameter = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(query.size(), parameter.size() + 1));
    auto name = parameter.substr(0, parameter.find('='));
    auto value = parameter.substr(std::min(parameter.size(), name.size() + 1));
    bool is_harmless = names_objects(name) || is_short_number(value);
    shown += shown.empty() ? "?" : "&";
    shown += is_harmless ? std::string(parameter) : std::string(name) + "=...";
  }
  return shown;
}

std::string without_secrets(std::string_view name) {
  auto scheme = scheme_of(name);
  if (scheme.empty()) return std::string(name);
  auto url = name.substr(0, name.find('#'));
  auto path_and_before = url.substr(0, url.find('?'));
  auto query = url.substr(std::min(url.size(), path_and_before.size() + 1));
  auto begin = scheme.size() + 3;
  auto authority = path_and_before.substr(begin, path_and_before.find('/', begin) - begin);
  auto user_end = authority.rfind('@');
  if (user_end != std::string_view::npos) begin += user_end + 1;
  return std::string(scheme) + "://" + std::string(path_and_before.substr(begin)) +
         query_without_secrets(query);
}

static int hexadecimal_digit(char c) noexcept {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

std::optional<std::string> percent_decoded(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      plain += text[i];
      continue;
    }
    int high = i + 2 < text.size() ? hexadecimal_digit(text[i + 1]) : -1;
    int low = i + 2 < text.size() ? hexadecimal_digit(text[i + 2]) : -1;
    if (high < 0 || low < 0) return std::nullopt;
    plain += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return plain;
}

}  // namespace lade
