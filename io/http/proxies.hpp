// Which requests go through a proxy, as libcurl decides it: its options PROXY and NOPROXY, and the
// environment variables of its manual, libcurl-env(3).

#pragma once

#include "origin.hpp"

#include <array>
#include <span>
#include <string>

namespace lade::io::http {

class proxies {
 public:
  // `proxy`, `no_proxy`: as client_options have them. Empty ones are those of the environment as it
  // is now.
  proxies(const std::string& proxy, const std::string& no_proxy);

  bool any() const noexcept { return !for_http().empty() || !for_https().empty(); }

  // With their passwords; empty where there is none.
  std::span<const std::string> urls() const noexcept { return urls_; }

  // Whether requests go through a proxy, which then looks up the host. Of a host that has a name:
  // what no_proxy says of addresses and networks is not read.
  bool lead_to(const origin& host) const noexcept;

 private:
  const std::string& for_http() const noexcept { return urls_[0]; }
  const std::string& for_https() const noexcept { return urls_[1]; }

  std::array<std::string, 2> urls_;
  std::string exempt_;  // names between commas and blanks
};

}  // namespace lade::io::http
