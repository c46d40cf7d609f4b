#include <lade/io/cache_statistics.hpp>

#include <string_view>

#include <fmt/format.h>

namespace lade::io {

static std::string bytes_text(std::uint64_t bytes) {
  constexpr double giga = 1e9;
  constexpr double mega = 1e6;
  auto value = static_cast<double>(bytes);
  return value >= giga ? fmt::format("{:.1f} GB", value / giga)
                       : fmt::format("{:.1f} MB", value / mega);
}

static std::string counter_text(std::uint64_t count, std::string_view name) {
  return count == 0 ? "" : fmt::format(", {} {}", count, name);
}

std::string to_string(const cache_statistics& of) {
  auto text = fmt::format("{} hits ({}), {} misses ({} fetched), {} of {} used", of.hits,
                          bytes_text(of.hit_bytes), of.misses, bytes_text(of.fetched_bytes),
                          bytes_text(of.used_bytes), bytes_text(of.limit_bytes));
  return text + counter_text(of.waits, "waited for others") +
         counter_text(of.refused, "did not fit") + counter_text(of.uncached, "not cached") +
         counter_text(of.failures, "not written") + counter_text(of.damaged, "damaged") +
         counter_text(of.evicted, "evicted");
}

void add(metrics& into, const cache_statistics& of, const metric_labels& labels) {
  auto sample = [&](const char* name, metric_type type, const char* help, std::uint64_t value) {
    into.add(std::string("lade_cache_") + name, type, help, static_cast<double>(value), labels);
  };
  using enum metric_type;
  sample("hits_total", counter, "Reads of a block that was there.", of.hits);
  sample("hit_bytes_total", counter, "Bytes of blocks that were there.", of.hit_bytes);
  sample("misses_total", counter, "Reads of a block that was fetched.", of.misses);
  sample("fetched_bytes_total", counter, "Bytes that were fetched.", of.fetched_bytes);
  sample("waits_total", counter, "Waits for another who fetched the same block.", of.waits);
  sample("refused_total", counter, "Fetched blocks that did not fit into the cache.", of.refused);
  sample("uncached_total", counter, "Reads of objects that cannot be cached.", of.uncached);
  sample("failures_total", counter, "Fetched blocks that could not be written.", of.failures);
  sample("damaged_total", counter, "Blocks removed because they were damaged.", of.damaged);
  sample("evicted_total", counter, "Blocks removed to free space.", of.evicted);
  sample("used_bytes", gauge, "Bytes in the cache.", of.used_bytes);
  sample("limit_bytes", gauge, "Bytes that may be in the cache.", of.limit_bytes);
}

}  // namespace lade::io
