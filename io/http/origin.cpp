#include "origin.hpp"

#include <lade/error.hpp>
#include <lade/io/http/error.hpp>
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

origin::origin(const std::string& url) {
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

std::string redirected(const std::string& from, const std::string& location) {
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
