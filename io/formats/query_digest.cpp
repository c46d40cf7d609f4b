#include "query_digest.hpp"

#include <lade/support/name_digest.hpp>
#include <lade/url.hpp>

#include <fmt/format.h>

namespace lade::detail {

std::string query_digest(std::string_view name) {
  if (scheme_of(name).empty()) return {};
  auto url = without_signature(name);
  auto begin = url.find('?');
  if (begin == std::string::npos) return {};
  support::name_digest digest;
  digest.add(std::string_view(url).substr(begin));
  return fmt::format("{:x}", digest.value());
}

}  // namespace lade::detail
