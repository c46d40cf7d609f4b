#include "origin.hpp"

#include <lade/error.hpp>
#include <lade/io/http/error.hpp>
#include <lade/printable.hpp>
#include <lade/url.hpp>

#include <algorithm>
#include <cctype>
#include <memory>
#include <new>

#include <curl/curl.h>

namespace lade::io::http {

struct free_curl_url {
  void operator()(CURLU* url) const noexcept { curl_url_cleanup(url); }
};
using curl_url_handle = std::unique_ptr<CURLU, free_curl_url>;

static curl_url_handle make_curl_url() {
  curl_url_handle url(curl_url());
  if (!url) throw std::bad_alloc();
  return url;
}

static std::string part_of_url(CURLU* url, CURLUPart part, unsigned flags = 0) {
  char* text = nullptr;
  if (curl_url_get(url, part, &text, flags) != CURLUE_OK) return {};
  const std::unique_ptr<char, decltype(&curl_free)> owned(text, curl_free);
  return text;
}

static std::string lower_case(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

static bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }
static bool is_letter(char c) noexcept { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

// Whether the host is four decimal numbers up to 255 without leading zeros, the form that all
// parsers read in the same way.
static bool is_plain_ipv4(std::string_view host) noexcept {
  int numbers = 0;
  while (true) {
    auto number = host.substr(0, host.find('.'));
    bool is_good = !number.empty() && number.size() <= 3 && std::ranges::all_of(number, is_digit) &&
                   (number.size() < 3 || number <= "255") &&
                   (number.size() == 1 || number[0] != '0');
    if (!is_good || ++numbers > 4) return false;
    if (number.size() == host.size()) return numbers == 4;
    host.remove_prefix(number.size() + 1);
  }
}

static bool is_plain_name(std::string_view host) noexcept {
  auto belongs = [](char c) { return is_letter(c) || is_digit(c) || c == '.' || c == '-'; };
  return !host.empty() && is_letter(host[0]) && std::ranges::all_of(host, belongs);
}

static bool is_plain_port(std::string_view port) noexcept {
  bool is_number = !port.empty() && port[0] != '0' && std::ranges::all_of(port, is_digit);
  return is_number && (port.size() < 5 || (port.size() == 5 && port <= "65535"));
}

// Parses a URL that all parsers read in the same way, in a tenth of libcurl's time. Most URLs are
// such. Returns false for others.
static bool parse_plain(std::string_view url, origin& into) {
  bool is_secure = url.starts_with("https://");
  if (!is_secure && !url.starts_with("http://")) return false;
  auto authority = url.substr(is_secure ? 8 : 7);
  authority = authority.substr(0, authority.find_first_of("/?#"));
  auto host = authority.substr(0, authority.find(':'));
  auto port = authority.substr(std::min(host.size() + 1, authority.size()));
  bool has_port = host.size() < authority.size();
  if (!is_plain_name(host) && !is_plain_ipv4(host)) return false;
  if (has_port && !is_plain_port(port)) return false;
  into.scheme = is_secure ? "https" : "http";
  into.host = lower_case(std::string(host));
  into.port = has_port ? port : is_secure ? "443" : "80";
  return true;
}

// libcurl's strings end at a zero byte.
static bool has_zero_byte(std::string_view text) noexcept {
  return text.find('\0') != std::string_view::npos;
}

void require_no_zero_byte(const std::string& url) {
  if (!has_zero_byte(url)) return;
  throw error(errc::invalid_argument, "open " + printable(without_secrets(url)),
              "a zero byte in it");
}

origin::origin(const std::string& url) {
  require_no_zero_byte(url);
  if (parse_plain(url, *this)) return;
  auto parsed = make_curl_url();
  if (curl_url_set(parsed.get(), CURLUPART_URL, url.c_str(), 0) == CURLUE_OK) {
    scheme = lower_case(part_of_url(parsed.get(), CURLUPART_SCHEME));
    host = lower_case(part_of_url(parsed.get(), CURLUPART_HOST));
    port = part_of_url(parsed.get(), CURLUPART_PORT, CURLU_DEFAULT_PORT);
  }
  if ((scheme != "http" && scheme != "https") || host.empty())
    throw error(errc::invalid_argument, "open " + without_secrets(url),
                "not a URL of http or https");
}

bool origin::is_address() const noexcept {
  return host.starts_with('[') ||
         std::ranges::all_of(host, [](char c) { return c == '.' || (c >= '0' && c <= '9'); });
}

[[noreturn]] static void refuse_host(const std::string& host, std::string_view reason) {
  throw error(errc::invalid_argument, "authorize " + printable(without_secrets(host)), reason);
}

std::string known_host(const std::string& host) {
  if (host.find("://") != std::string::npos)
    refuse_host(host, "a host or host:port is needed, without a scheme");
  bool is_more = host.find_first_of("/\\?#@% \t\r\n") != std::string::npos;
  if (host.empty() || is_more || host.ends_with(':'))
    refuse_host(host, "a host or host:port is needed");
  auto bracket = host.rfind(']');
  bool has_port = host.find(':', bracket == std::string::npos ? 0 : bracket) != std::string::npos;
  std::string known;
  try {
    const origin parsed("http://" + host);
    known = has_port ? parsed.authority() : parsed.host;
  } catch (const error&) {}
  if (known.empty()) refuse_host(host, "it is no host or host:port");
  return known;
}

std::string redirected(const std::string& from, const std::string& location) {
  if (has_zero_byte(location)) return {};
  auto url = make_curl_url();
  if (curl_url_set(url.get(), CURLUPART_URL, from.c_str(), 0) == CURLUE_OK &&
      curl_url_set(url.get(), CURLUPART_URL, location.c_str(), CURLU_URLENCODE) == CURLUE_OK) {
    auto scheme = part_of_url(url.get(), CURLUPART_SCHEME);
    auto to = part_of_url(url.get(), CURLUPART_URL);
    if (!to.empty() && (scheme == "http" || scheme == "https")) return to;
  }
  return {};
}

}  // namespace lade::io::http
