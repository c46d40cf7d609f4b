#include <lade/url.hpp>

#include <algorithm>
#include <array>
#include <span>
#include <utility>

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

static std::string_view take_parameter(std::string_view& query) noexcept {
  auto parameter = query.substr(0, query.find('&'));
  query.remove_prefix(std::min(query.size(), parameter.size() + 1));
  return parameter;
}

static std::string_view name_of_parameter(std::string_view parameter) noexcept {
  return parameter.substr(0, parameter.find('='));
}

static bool is_short_number(std::string_view value) noexcept {
  return !value.empty() && value.size() <= 10 &&
         std::ranges::all_of(value, [](char c) { return c >= '0' && c <= '9'; });
}

template <std::size_t N>
static bool is_one_of(const std::array<std::string_view, N>& names,
                      std::string_view name) noexcept {
  return std::ranges::find(names, name) != names.end();
}

// Parameters of the S3 interface whose values are names of objects or markers.
static bool names_objects(std::string_view parameter) noexcept {
  constexpr std::array<std::string_view, 8> names{"delimiter",   "encoding-type", "prefix",
                                                  "start-after", "uploadId",      "uploads",
                                                  "versionId",   "fetch-owner"};
  return is_one_of(names, parameter);
}

// Parameters whose values are shown if they are numbers.
static bool counts(std::string_view parameter) noexcept {
  constexpr std::array<std::string_view, 11> names{
      "X-Amz-Expires", "limit", "list-type",  "max-keys", "max-uploads", "offset",
      "page",          "part",  "partNumber", "v",        "version"};
  return is_one_of(names, parameter);
}

// Whether the text may contain further parameters, separated in an unusual way.
static bool may_hold_others(std::string_view value) noexcept {
  return value.find_first_of("=;?@:") != std::string_view::npos;
}

// Whether the secret has been replaced already: "...", or ".../a.jpg" if a path was appended.
static bool is_hidden(std::string_view value) noexcept {
  return value == "..." || (value.starts_with(".../") && !may_hold_others(value));
}

static std::string parameter_without_secrets(std::string_view parameter) {
  constexpr std::size_t longest_marker = 10;  // a longer name without a value is a token
  auto name = name_of_parameter(parameter);
  auto value = parameter.substr(std::min(parameter.size(), name.size() + 1));
  if (may_hold_others(name)) return "...";
  bool has_value = value.find_first_not_of('=') != std::string_view::npos;  // base64 ends in "="
  if (!has_value && name.size() > longest_marker && !names_objects(name)) return "...";
  if (!has_value && value.empty()) return std::string(parameter);
  bool is_harmless = is_hidden(value) || (names_objects(name) && !may_hold_others(value)) ||
                     (counts(name) && is_short_number(value));
  return is_harmless ? std::string(parameter) : std::string(name) + "=...";
}

static std::string query_without_secrets(std::string_view query) {
  std::string shown;
  while (!query.empty()) {
    shown += shown.empty() ? '?' : '&';
    shown += parameter_without_secrets(take_parameter(query));
  }
  return shown;
}

// The end of the user information, and whether it is certain: an unescaped password may contain
// bytes that end an authority (RFC 3986, section 3.2).
struct user_information {
  std::size_t end = 0;
  bool is_certain = true;
  bool is_all = false;  // the rest may be a query or fragment, so all of it is hidden
};

static user_information find_user_information(std::string_view rest) noexcept {
  auto authority = rest.substr(0, rest.find_first_of("/?#"));
  auto last = rest.rfind('@');
  bool may_be_there = authority.find_first_of(":@") != std::string_view::npos;
  if (last == std::string_view::npos || !may_be_there) return {};
  if (last < authority.size()) return {.end = last + 1};
  bool is_all = rest.substr(0, last).find_first_of("?#") != std::string_view::npos;
  return {.end = last + 1, .is_certain = false, .is_all = is_all};
}

// The index after the scheme of a URL; npos for other names. Handles several schemes, as in
// "tar::https://", and more than two slashes.
static std::size_t end_of_scheme(std::string_view name) noexcept {
  auto end = name.find("://");
  if (end == std::string_view::npos) return end;
  return std::min(name.find_first_not_of('/', end + 1), name.size());
}

std::string without_secrets(std::string_view name) {
  auto begin = end_of_scheme(name);
  if (begin == std::string_view::npos) return std::string(name);
  std::string shown(name.substr(0, begin));
  auto rest = name.substr(begin);
  auto user = find_user_information(rest);
  if (!user.is_certain) shown += user.is_all ? "..." : "...@";
  if (user.is_all) return shown;
  rest.remove_prefix(user.end);
  rest = rest.substr(0, rest.find('#'));
  auto path = rest.substr(0, rest.find('?'));
  auto query = rest.substr(std::min(rest.size(), path.size() + 1));
  return shown + std::string(path) + query_without_secrets(query);
}

// A kind of signed URL. A URL is of this kind if it has all parameters of `required` and, unless
// that is empty, one of `one_of`. `all`: the parameters that belong to the signature.
struct signature_kind {
  std::span<const std::string_view> required;
  std::span<const std::string_view> one_of;
  std::span<const std::string_view> all;
};

static bool has_parameter(std::string_view query, std::span<const std::string_view> names) {
  while (!query.empty())
    if (std::ranges::find(names, name_of_parameter(take_parameter(query))) != names.end())
      return true;
  return false;
}

// https://docs.aws.amazon.com/AmazonS3/latest/API/sigv4-query-string-auth.html
// https://docs.aws.amazon.com/AmazonS3/latest/userguide/RESTAuthentication.html
// https://docs.aws.amazon.com/AmazonCloudFront/latest/DeveloperGuide/private-content-signed-urls.html
// https://cloud.google.com/storage/docs/authentication/signatures
// https://learn.microsoft.com/rest/api/storageservices/create-service-sas
static std::span<const signature_kind> signature_kinds() noexcept {
  static constexpr std::string_view amazon[] = {
      "X-Amz-Algorithm",     "X-Amz-Credential", "X-Amz-Date",          "X-Amz-Expires",
      "X-Amz-SignedHeaders", "X-Amz-Signature",  "X-Amz-Security-Token"};
  static constexpr std::string_view google[] = {"X-Goog-Algorithm",     "X-Goog-Credential",
                                                "X-Goog-Date",          "X-Goog-Expires",
                                                "X-Goog-SignedHeaders", "X-Goog-Signature"};
  static constexpr std::string_view older[] = {
      "Signature",      "Expires",     "AWSAccessKeyId", "x-amz-security-token",
      "GoogleAccessId", "Key-Pair-Id", "Policy",         "Hash-Algorithm"};
  static constexpr std::string_view azure[] = {"sig", "sv",  "ss",  "srt", "sp",  "se",    "st",
                                               "spr", "sip", "sr",  "si",  "sdd", "skoid", "sktid",
                                               "skt", "ske", "sks", "skv", "ses", "saoid"};
  static constexpr std::string_view of_amazon[] = {"X-Amz-Signature", "X-Amz-Credential",
                                                   "X-Amz-Date"};
  static constexpr std::string_view of_google[] = {"X-Goog-Signature", "X-Goog-Credential",
                                                   "X-Goog-Date"};
  static constexpr std::string_view of_older[] = {"Signature"};
  static constexpr std::string_view keys_of_older[] = {"AWSAccessKeyId", "GoogleAccessId",
                                                       "Key-Pair-Id"};
  static constexpr std::string_view of_azure[] = {"sig", "sv"};
  static constexpr std::string_view ends_of_azure[] = {"se", "si"};
  static constexpr signature_kind kinds[] = {{of_amazon, {}, amazon},
                                             {of_google, {}, google},
                                             {of_older, keys_of_older, older},
                                             {of_azure, ends_of_azure, azure}};
  return kinds;
}

static bool is_signed_by(const signature_kind& kind, std::string_view query) {
  bool has_required = std::ranges::all_of(
      kind.required, [&](auto& each) { return has_parameter(query, std::span(&each, 1)); });
  return has_required && (kind.one_of.empty() || has_parameter(query, kind.one_of));
}

std::string without_signature(std::string_view url) {
  auto target = url.substr(0, url.find('#'));
  auto before = target.substr(0, target.find('?'));
  auto query = target.substr(std::min(target.size(), before.size() + 1));
  for (auto& kind : signature_kinds()) {
    if (!is_signed_by(kind, query)) continue;
    std::string kept(before);
    for (char mark = '?'; !query.empty();) {
      auto parameter = take_parameter(query);
      if (std::ranges::find(kind.all, name_of_parameter(parameter)) != kind.all.end()) continue;
      kept += std::exchange(mark, '&');
      kept += parameter;
    }
    return kept + std::string(url.substr(target.size()));
  }
  return std::string(url);
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
