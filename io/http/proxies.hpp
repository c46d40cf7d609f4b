// Determines which requests go through a proxy, by libcurl's rules: its options PROXY and NOPROXY,
// and the environment variables in libcurl-env(3).

#pragma once

#include "origin.hpp"

#include <array>
#include <span>
#include <string>

namespace lade::io::http {

class proxies {
 public:
  // `proxy`, `no_proxy`: of client_options. Empty ones are read from the environment, once.
  proxies(const std::string& proxy, const std::string& no_proxy);

  bool any() const noexcept { return !for_http().empty() || !for_https().empty(); }

  // The proxies with their passwords; empty if there is none.
  std::span<const std::string> urls() const noexcept { return urls_; }

  // Whether requests to a host go through a proxy, which then looks up the name. For hosts with a
  // name: addresses and networks in no_proxy are ignored.
  bool lead_to(const origin& host) const noexcept;

 private:
  const std::string& for_http() const noexcept { return urls_[0]; }
  const std::string& for_https() const noexcept { return urls_[1]; }

  std::array<std::string, 2> urls_;
  std::string exempt_;  // names separated by commas and blanks
};

}  // namespace lade::io::http
