// The parts of URLs that determine the receiver of requests and credentials.

#pragma once

#include <string>
#include <string_view>

namespace lade::io::http {

// An origin (RFC 6454): URLs of one origin may receive the same secrets.
struct origin {
  std::string scheme;  // "http" or "https"
  std::string host;    // lower case; an IPv6 address in brackets
  std::string port;    // the default port if the URL has none

  // Throws error(invalid_argument) for anything but a URL of http or https, and for a zero byte.
  explicit origin(const std::string& url);

  std::string authority() const { return host + ":" + port; }
  bool is_address() const noexcept;  // whether the host is an address, which needs no lookup

  friend bool operator==(const origin&, const origin&) = default;
};

// Normalises a host that a program has named, as origins have it: "host" or "host:port". Throws
// error(invalid_argument) for other texts.
std::string known_host(const std::string& host);

// Throws error(invalid_argument) for a URL with a zero byte: libcurl would use only the part before
// it.
void require_no_zero_byte(const std::string& url);

// The target of a Location header in a response to `from`; empty if it is no URL of http or https.
std::string redirected(const std::string& from, const std::string& location);

}  // namespace lade::io::http
