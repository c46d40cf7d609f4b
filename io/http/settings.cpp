#include "settings.hpp"

#include <lade/error.hpp>
#include <lade/io/file.hpp>

#include <cstdlib>
#include <utility>

#include <fmt/format.h>

namespace lade::io::http {

std::string first_set(std::initializer_list<const char*> names) {
  for (auto* name : names)
    if (auto* value = std::getenv(name); value && *value) return value;
  return {};
}

task<std::optional<std::string>> read_settings(std::string path) {
  constexpr std::size_t most = 1 << 20;
  std::string text;
  try {
    auto chunks = io::stream(path, {.chunk_bytes = 64 << 10});
    while (auto* chunk = co_await chunks.next()) {
      text += chunk->text();
      if (text.size() > most)
        throw error(errc::limit_exceeded, "read " + path, "it has more than a MiB");
    }
  } catch (const error& failure) {
    bool is_absent = failure.code() == std::errc::no_such_file_or_directory ||
                     failure.code() == std::errc::not_a_directory;
    if (!is_absent) throw;
    co_return std::nullopt;
  }
  co_return text;
}

std::string amazon_host(const std::string& service, const std::string& region) {
  return fmt::format("{}.{}.amazonaws.com{}", service, region,
                     region.starts_with("cn-") ? ".cn" : "");
}

}  // namespace lade::io::http
