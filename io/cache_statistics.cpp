#include <lade/io/cache_statistics.hpp>

#include <cstdio>
#include <string_view>

namespace lade::io {

static std::string bytes_text(std::uint64_t bytes) {
  constexpr double giga = 1e9;
  constexpr double mega = 1e6;
  auto value = static_cast<double>(bytes);
  char text[32];
  if (value >= giga)
    (void)std::snprintf(text, sizeof text, "%.1f GB", value / giga);
  else
    (void)std::snprintf(text, sizeof text, "%.1f MB", value / mega);
  return text;
}

static std::string others_text(std::uint64_t count, std::string_view what) {
  return count == 0 ? "" : ", " + std::to_string(count) + " " + std::string(what);
}

std::string to_string(const cache_statistics& of) {
  return std::to_string(of.hits) + " hits (" + bytes_text(of.hit_bytes) + "), " +
         std::to_string(of.misses) + " misses (" + bytes_text(of.fetched_bytes) + " fetched), " +
         bytes_text(of.used_bytes) + " of " + bytes_text(of.limit_bytes) + " used" +
         others_text(of.waits, "waited for others") + others_text(of.refused, "had no room") +
         others_text(of.uncached, "not cached") + others_text(of.failures, "not written") +
         others_text(of.damaged, "damaged") + others_text(of.evicted, "evicted");
}

}  // namespace lade::io
