// Statistics of object caches.

#pragma once

#include <lade/metrics.hpp>

#include <cstdint>
#include <string>

namespace lade::io {

// Counts of this process since the cache was constructed. A block is a block of a disk cache, or an
// object of a memory cache.
struct cache_statistics {
  std::uint64_t hits = 0;           // reads of cached blocks
  std::uint64_t hit_bytes = 0;      // bytes of the contents of hits
  std::uint64_t misses = 0;         // reads of blocks that were fetched
  std::uint64_t fetched_bytes = 0;  // bytes of the contents of misses and of uncached reads
  std::uint64_t waits = 0;          // waits for another reader that fetched the same block
  std::uint64_t refused = 0;        // fetched blocks that exceeded the capacity
  std::uint64_t uncached = 0;       // reads of objects that cannot be cached
  std::uint64_t failures = 0;       // fetched blocks that could not be written
  std::uint64_t damaged = 0;        // removed blocks that were damaged
  std::uint64_t evicted = 0;        // blocks evicted because they were not used
  std::uint64_t used_bytes = 0;     // capacity in use: on the disk, by all processes; or in memory
  std::uint64_t limit_bytes = 0;    // capacity
};

// Returns "12 hits (1.2 MB), 3 misses (0.3 MB fetched), 1.5 of 10.0 GB used", followed by the other
// counts that are not 0.
std::string to_string(const cache_statistics& of);

// Adds the statistics as metrics of Prometheus, lade_cache_.... `labels` distinguish caches.
// `server` is a metrics_server:
//
//   auto shown = server.add(
//       [cache](lade::metrics& all) { add(all, cache->stats(), {{"cache", "train"}}); });
void add(metrics& into, const cache_statistics& of, const metric_labels& labels = {});

}  // namespace lade::io
