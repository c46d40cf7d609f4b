#include "proxies.hpp"

#include "settings.hpp"

#include <algorithm>
#include <string_view>

namespace lade::io::http {

proxies::proxies(const std::string& proxy, const std::string& no_proxy)
    : urls_{proxy, proxy},
      exempt_(no_proxy.empty() ? first_set({"no_proxy", "NO_PROXY"}) : no_proxy) {
  std::ranges::transform(exempt_, exempt_.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? char(c - 'A' + 'a') : c; });
  if (!proxy.empty()) return;
  urls_ = {first_set({"http_proxy", "all_proxy", "ALL_PROXY"}),
           first_set({"https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"})};
}

static std::string_view without_last_dot(std::string_view name) noexcept {
  return name.substr(0, name.size() - (name.ends_with('.') ? 1 : 0));
}

// Whether a host matches an entry of no_proxy. "a.example" matches "a.example", "example" and
// ".example".
static bool is_exempt(std::string_view host, std::string_view by) noexcept {
  by = without_last_dot(by);
  if (by.starts_with('.')) by.remove_prefix(1);
  if (by.empty() || !host.ends_with(by)) return false;
  return host.size() == by.size() || host[host.size() - by.size() - 1] == '.';
}

bool proxies::lead_to(const origin& host) const noexcept {
  if ((host.scheme == "https" ? for_https() : for_http()).empty()) return false;
  if (exempt_ == "*") return false;
  auto name = without_last_dot(host.host);
  for (std::string_view rest = exempt_; !rest.empty();) {
    auto each = rest.substr(0, rest.find_first_of(", \t"));
    if (is_exempt(name, each)) return false;
    rest.remove_prefix(std::min(rest.size(), each.size() + 1));
  }
  return true;
}

}  // namespace lade::io::http
