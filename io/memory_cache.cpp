#include "caches.hpp"
#include "flights.hpp"
#include "kept_reader.hpp"

#include <lade/error.hpp>
#include <lade/io/memory_cache.hpp>
#include <lade/support/require.hpp>
#include <lade/this_context.hpp>
#include <lade/url.hpp>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace lade::io {

using object_flights = detail::flights<std::string, std::hash<std::string>>;

struct memory_cache::state {
  struct entry {
    entry(buffer kept, std::string tag, std::uint64_t now)
        : content(std::move(kept)), etag(std::move(tag)), used_in(now) {}

    buffer content;
    std::string etag;
    std::uint64_t used_in;  // the last epoch of use
  };

  state(std::shared_ptr<const store> cached, const memory_cache_options& requested)
      : of(detail::require_store("open a memory cache", std::move(cached))), options(requested) {
    support::require_count("open a memory cache", "max_bytes", options.max_bytes,
                           {.least = 1, .most = ~std::uint64_t{0} / 4});
    support::require_count("open a memory cache", "max_object_bytes", options.max_object_bytes,
                           {.least = 1, .most = std::uint64_t{1} << 40});
  }

  std::optional<object_part> find(const std::string& key);
  bool keep(const std::string& key, const object_part& whole);
  bool has_room(std::uint64_t bytes);  // with the mutex held; counts refused bytes
  void see_epoch(std::uint64_t of_run);
  void begin_epoch();  // with the mutex held

  const std::shared_ptr<const store> of;
  const memory_cache_options options;
  object_flights flights;
  std::atomic<std::uint64_t> next_epoch = 0;  // the first epoch of runs that has not started

  std::mutex mutex;                                // guards the members below
  std::unordered_map<std::string, entry> entries;  // by URL without its signature
  std::unordered_set<std::string> large;           // objects that are too large to cache
  std::uint64_t epoch = 0;                         // counted by the cache, independent of runs
  std::uint64_t refused_bytes = 0;                 // bytes that did not fit in this epoch
  cache_statistics counters;
};

std::optional<object_part> memory_cache::state::find(const std::string& key) {
  std::lock_guard lock(mutex);
  auto found = entries.find(key);
  if (found == entries.end()) return std::nullopt;
  auto& kept = found->second;
  kept.used_in = epoch;
  ++counters.hits;
  counters.hit_bytes += kept.content.size();
  return object_part(kept.content, kept.content.size(), kept.etag);
}

bool memory_cache::state::has_room(std::uint64_t bytes) {
  if (bytes <= options.max_bytes - counters.used_bytes) return true;
  ++counters.refused;
  refused_bytes += bytes;
  return false;
}

bool memory_cache::state::keep(const std::string& key, const object_part& whole) {
  auto bytes = whole.content().size();
  {
    std::lock_guard lock(mutex);
    ++counters.misses;
    counters.fetched_bytes += bytes;
    if (!has_room(bytes)) return false;
  }
  buffer copy(bytes);
  if (bytes > 0) std::memcpy(copy.data(), whole.content().data(), bytes);
  std::lock_guard lock(mutex);
  if (!has_room(bytes)) return false;
  bool is_new = entries.try_emplace(key, std::move(copy), whole.etag(), epoch).second;
  if (is_new) counters.used_bytes += bytes;
  return true;
}

void memory_cache::state::see_epoch(std::uint64_t of_run) {
  of_run = detail::counted_epoch(of_run);
  if (of_run < next_epoch.load(std::memory_order_relaxed)) return;
  std::lock_guard lock(mutex);
  if (of_run < next_epoch) return;
  bool is_first = next_epoch == 0;
  next_epoch = of_run + 1;
  if (!is_first) begin_epoch();
}

void memory_cache::state::begin_epoch() {
  auto ended = epoch++;
  auto bytes_to_free = std::min(std::exchange(refused_bytes, 0), options.max_bytes);
  using each = decltype(entries)::iterator;
  std::vector<each> unused;
  for (auto at = entries.begin(); at != entries.end(); ++at)
    if (at->second.used_in < ended) unused.push_back(at);
  std::ranges::sort(unused, {}, [](each at) { return at->second.used_in; });
  for (auto at : unused) {
    if (options.max_bytes - counters.used_bytes >= bytes_to_free) break;
    counters.used_bytes -= at->second.content.size();
    entries.erase(at);
    ++counters.evicted;
  }
}

memory_cache::memory_cache(std::shared_ptr<const store> of, const memory_cache_options& options)
    : state_(std::make_shared<state>(std::move(of), options)) {}

cache_statistics memory_cache::stats() const {
  std::lock_guard lock(state_->mutex);
  auto result = state_->counters;
  result.limit_bytes = state_->options.max_bytes;
  return result;
}

void memory_cache::begin_epoch() const {
  std::lock_guard lock(state_->mutex);
  state_->begin_epoch();
}

static void count_wait(memory_cache::state& cache) {
  std::lock_guard lock(cache.mutex);
  ++cache.counters.waits;
}

static bool is_recorded_as_large(memory_cache::state& cache, const std::string& key) {
  std::lock_guard lock(cache.mutex);
  bool is_large = cache.large.contains(key);
  if (is_large) ++cache.counters.uncached;
  return is_large;
}

// Reads a whole object. Empty if it is too large. `key`: its key in the cache, also in the
// functions below.
static task<std::optional<object_part>> fetch_object(memory_cache::state& cache,
                                                     const std::string& url,
                                                     const std::string& key) {
  auto part = co_await cache.of->read_part(url, 0, cache.options.max_object_bytes, "");
  bool is_small = part.content().size() <= cache.options.max_object_bytes;
  if (part.is_whole() && is_small) co_return part;
  std::lock_guard lock(cache.mutex);
  cache.large.insert(key);
  ++cache.counters.uncached;
  co_return std::nullopt;
}

static task<std::optional<object_part>> fetch_for_all(memory_cache::state& cache,
                                                      const std::string& url,
                                                      const std::string& key,
                                                      object_flights::lead& flight) {
  auto found = cache.find(key);
  if (!found) {
    found = co_await fetch_object(cache, url, key);
    bool is_kept = found && cache.keep(key, *found);
    flight.set_result(is_kept ? object_flights::outcome::kept : object_flights::outcome::not_kept);
  } else {
    flight.set_result(object_flights::outcome::kept);
  }
  co_return found;
}

// Returns an object from the cache or from the store. Empty if it cannot be cached.
static task<std::optional<object_part>> obtain_object(memory_cache::state& cache,
                                                      const std::string& url) {
  auto& current = co_await this_context_reference();
  cache.see_epoch(current.epoch);
  auto key = without_signature(url);
  auto found = cache.find(key);
  while (!found) {
    if (is_recorded_as_large(cache, key)) co_return std::nullopt;
    auto [flight, leads] = cache.flights.join(key);
    if (leads) {
      object_flights::lead lead(cache.flights, key, flight, current);
      co_return co_await fetch_for_all(cache, url, key, lead);
    }
    count_wait(cache);
    bool has_ended = co_await detail::ends_in_time(flight);
    found = cache.find(key);
    if (!found && (!has_ended || flight->result == object_flights::outcome::not_kept))
      co_return co_await fetch_object(cache, url, key);
  }
  co_return found;
}

static task<buffer> read_kept(std::shared_ptr<memory_cache::state> cache, std::string url) {
  auto found = co_await obtain_object(*cache, url);
  if (found) co_return found->content();
  co_return co_await cache->of->read(std::move(url));
}

task<buffer> memory_cache::read(std::string url) const { return read_kept(state_, std::move(url)); }

static task<std::shared_ptr<const byte_reader>> open_kept(
    std::shared_ptr<memory_cache::state> cache, std::string url, bool may_be_absent) {
  if (may_be_absent && !cache->find(without_signature(url))) {
    auto there = co_await cache->of->open(url, true);
    if (!there) co_return nullptr;
  }
  auto found = co_await obtain_object(*cache, url);
  if (!found) co_return co_await cache->of->open(std::move(url), may_be_absent);
  co_return std::make_shared<const kept_reader>(*std::move(found), without_secrets(url));
}

task<std::shared_ptr<const byte_reader>> memory_cache::open(std::string url,
                                                            bool may_be_absent) const {
  return open_kept(state_, std::move(url), may_be_absent);
}

static async_generator<buffer> stream_kept(std::shared_ptr<memory_cache::state> cache,
                                           std::string url, stream_options options) {
  auto found = co_await obtain_object(*cache, url);
  auto chunks = found ? lade::stream(std::make_shared<const memory_reader>(found->content(),
                                                                           without_secrets(url)),
                                     options)
                      : cache->of->stream(std::move(url), options);
  while (auto* chunk = co_await chunks.next()) co_yield *chunk;
}

async_generator<buffer> memory_cache::stream(std::string url, stream_options options) const {
  return stream_kept(state_, std::move(url), options);
}

static task<object_part> read_kept_part(std::shared_ptr<memory_cache::state> cache, std::string url,
                                        std::uint64_t offset, std::size_t bytes, std::string etag) {
  auto found = co_await obtain_object(*cache, url);
  if (!found) co_return co_await cache->of->read_part(url, offset, bytes, std::move(etag));
  if (!etag.empty() && etag != found->etag())
    throw error(errc::changed, "read " + without_secrets(url), "the object has changed");
  auto& whole = found->content();
  auto begin = static_cast<std::size_t>(std::min<std::uint64_t>(offset, whole.size()));
  auto part = whole.slice(begin, std::min(bytes, whole.size() - begin));
  co_return object_part(std::move(part), whole.size(), found->etag());
}

task<object_part> memory_cache::read_part(std::string url, std::uint64_t offset, std::size_t bytes,
                                          std::string etag) const {
  return read_kept_part(state_, std::move(url), offset, bytes, std::move(etag));
}

task<std::string> memory_cache::identity() const { return state_->of->identity(); }

async_generator<object_info> memory_cache::list(std::string prefix) const {
  return state_->of->list(std::move(prefix));
}

std::shared_ptr<const memory_cache> mount_memory_cache(std::string_view prefix,
                                                       const memory_cache_options& options) {
  auto upstream = find_store(prefix);
  if (!upstream)
    throw error(errc::invalid_argument, "mount a cache", fmt::format("'{}' is no URL", prefix));
  auto cache = std::make_shared<const memory_cache>(std::move(upstream), options);
  mount(prefix, cache);
  return cache;
}

}  // namespace lade::io
