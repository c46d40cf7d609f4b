#include "settings.hpp"

#include <lade/error.hpp>
#include <lade/io/file.hpp>

#include <cstdlib>
#include <utility>

namespace lade::io::http {

std::string first_set(std::initializer_list<const char*> names) {
  for (auto* name : names)
    if (auto* value = std::getenv(name); value && *value) return value;
  return {};
}

task<std::optional<std::string>> read_settings(std::string path) {
  constexpr std::uint64_t most = 1 << 20;
  auto file = co_await io::try_open(path);
  if (!file) co_return std::nullopt;
  if (file->size() > most)
    throw error(errc::limit_exceeded, "read " + path, "it has more than a MiB");
  auto content = co_await file->read_at(0, file->size());
  co_return std::string(content.text());
}

std::string amazon_host(const std::string& service, const std::string& region) {
  return service + "." + region + ".amazonaws.com" + (region.starts_with("cn-") ? ".cn" : "");
}

}  // namespace lade::io::http
