// What caches of objects have done.

#pragma once

#include <lade/metrics.hpp>

#include <cstdint>
#include <string>

namespace lade::io {

// Since the cache was made, by this process. Blocks are objects in a memory cache.
struct cache_statistics {
  std::uint64_t hits = 0;           // reads of a block that was there
  std::uint64_t hit_bytes = 0;      // of their contents
  std::uint64_t misses = 0;         // reads of a block that was fetched
  std::uint64_t fetched_bytes = 0;  // of their contents, and of what was read through
  std::uint64_t waits = 0;          // for another who fetched the same block
  std::uint64_t refused = 0;        // fetched blocks for which there was no room
  std::uint64_t uncached = 0;       // reads of objects that cannot be cached
  std::uint64_t failures = 0;       // fetched blocks that could not be written
  std::uint64_t damaged = 0;        // blocks that were removed because they were damaged
  std::uint64_t evicted = 0;        // blocks that were removed to have room
  std::uint64_t used_bytes = 0;     // on the disk, by all processes; in memory
  std::uint64_t limit_bytes = 0;
};

// "12 hits (1.2 MB), 3 misses (0.3 MB fetched), 1.5 of 10.0 GB used", and what else is not 0.
std::string to_string(const cache_statistics& statistics);

// The same for Prometheus, lade_cache_..., with labels that tell caches apart. `server` is a
// metrics_server:
//
//   auto shown = server.add(
//       [cache](lade::metrics& all) { add(all, cache->stats(), {{"cache", "train"}}); });
void add(metrics& into, const cache_statistics& statistics, const metric_labels& labels = {});

}  // namespace lade::io
