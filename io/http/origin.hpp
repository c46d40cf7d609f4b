// The parts of URLs that decide where requests and credentials go.

#pragma once

#include <string>
#include <string_view>

namespace lade::io::http {

// RFC 6454: what may see the same secrets.
struct origin {
  std::string scheme;  // "http" or "https"
  std::string host;    // lower case; an IPv6 address in brackets
  std::string port;    // also where the URL does not say one

  // Throws error(invalid_argument) for what is no URL of http or https, or has a zero byte.
  explicit origin(const std::string& url);

  std::string authority() const { return host + ":" + port; }
  bool is_address() const noexcept;  // so that there is no name to look up

  friend bool operator==(const origin&, const origin&) = default;
};

// "host", or "host:port" where a port is given, as origins have them: what a program names a host
// by. Throws error(invalid_argument) for what is neither.
std::string known_host(const std::string& host);

// Throws error(invalid_argument) for a URL with a zero byte, of which libcurl would take what
// stands before it.
void require_no_zero_byte(const std::string& url);

// Where a Location header leads to, from the URL that it was an answer of; empty if that is no URL
// of http or https.
std::string redirected(const std::string& from, const std::string& location);

}  // namespace lade::io::http
