#include "disk_cache_state.hpp"
#include "kept_reader.hpp"

#include <lade/buffer_pool.hpp>
#include <lade/error.hpp>
#include <lade/io/ranges.hpp>
#include <lade/runtime.hpp>
#include <lade/support/require.hpp>
#include <lade/this_context.hpp>
#include <lade/url.hpp>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <span>
#include <system_error>
#include <utility>

#include <fmt/format.h>

namespace lade::io {

static std::string require_directory(const disk_cache_options& options) {
  if (options.directory.empty())
    throw error(errc::invalid_argument, "open a cache", "no directory is set");
  std::string directory(options.directory);
  auto doing = "open the cache " + directory;
  support::require_count(doing, "max_bytes", options.max_bytes,
                         {.least = 1, .most = ~std::uint64_t{0} / 4});
  support::require_count(doing, "block_bytes", options.block_bytes,
                         {.least = 4096, .most = std::uint64_t{1} << 30});
  return directory;
}

disk_cache::state::state(std::shared_ptr<const store> cached, const disk_cache_options& options)
    : of(detail::require_store("open a cache", std::move(cached))),
      freshness(options.freshness),
      block_bytes(options.block_bytes),
      verify_every_read(options.verify_every_read),
      directory(require_directory(options), options.max_bytes) {}

void disk_cache::state::set_store(std::string_view identity) {
  std::lock_guard lock(mutex);
  if (knows_store()) return;
  store_ = detail::siphash128(std::as_bytes(std::span(identity)));
  knows_store_.store(true, std::memory_order_release);
}

bool disk_cache::state::is_in(const block_set& set, const detail::block_key& object) const {
  std::lock_guard lock(mutex);
  return set.contains(object);
}

void disk_cache::state::add_to(block_set& set, const detail::block_key& object) {
  std::lock_guard lock(mutex);
  set.insert(object);
}

bool disk_cache::state::is_verified(const detail::block_key& block,
                                    std::uint32_t crc) const noexcept {
  return verified[block.low % verified.size()].load(std::memory_order_relaxed) ==
         verified_mark(block, crc);
}

void disk_cache::state::mark_verified(const detail::block_key& block, std::uint32_t crc) noexcept {
  verified[block.low % verified.size()].store(verified_mark(block, crc), std::memory_order_relaxed);
}

disk_cache::disk_cache(std::shared_ptr<const store> of, const disk_cache_options& options)
    : state_(std::make_shared<state>(std::move(of), options)) {}

cache_statistics disk_cache::stats() const {
  auto& s = *state_;
  return {s.hits,
          s.hit_bytes,
          s.misses,
          s.fetched_bytes,
          s.waits,
          s.refused,
          s.uncached,
          s.failures,
          s.damaged,
          s.evicted,
          s.directory.use().used_bytes(),
          s.directory.limit_bytes()};
}

const std::string& disk_cache::directory() const noexcept { return state_->directory.path(); }

std::string disk_cache::failure() const { return state_->directory.failure(); }

static void evict_blocks(disk_cache::state* from) { from->evicted += from->directory.evict(); }

void disk_cache::begin_epoch() const {
  auto& next = state_->next_epoch;
  auto epoch = detail::counted_epoch(std::max<std::uint64_t>(next, 1));  // 0 starts by itself
  next = epoch + 1;
  if (state_->directory.use().begin_epoch(epoch)) evict_blocks(state_.get());
}

// The first caller in an epoch evicts the blocks that the last epoch did not use; the others wait.
static task<> begin_epoch_of_run(disk_cache::state& cache, const context& current) {
  constexpr detail::block_key no_block;
  while (!cache.has_begun(current.epoch)) {
    auto [flight, leads] = cache.flights.join(no_block);
    if (!leads) {
      co_await flight->ended;
      continue;
    }
    block_flights::lead lead(cache.flights, no_block, flight, current);
    if (cache.has_begun(current.epoch)) co_return;
    if (cache.directory.use().begin_epoch(current.epoch))
      co_await current.runtime->pool().run(evict_blocks, &cache);
    cache.next_epoch = detail::counted_epoch(current.epoch) + 1;
  }
}

// Must be called before the first key is made.
static task<> query_identity(disk_cache::state& cache) {
  auto identity = co_await cache.of->identity();
  cache.set_store(identity);
}

// Asks the store whether the cached object is still current, and drops it from the cache if not.
static task<> query_once(disk_cache::state& cache, const std::string& url) {
  auto key = cache.key_of(url, 0);
  if (cache.is_in(cache.requested, key)) co_return;
  auto now = co_await cache.of->read_part(url, 0, 1, "");
  auto cached = co_await open_block(cache, key);
  bool is_same = cached && !now.etag().empty() && cached->etag == now.etag() &&
                 cached->label.object_bytes == now.object_bytes();
  if (cached && !is_same) {
    const cached_entity before(url, cached->label.object_bytes, cached->etag);
    co_await forget_entity(cache, before);
  }
  cache.add_to(cache.requested, key);
}

// Returns the first block of an object, which identifies its version. Empty if the object must be
// read from the store.
static task<std::optional<object_part>> first_block(disk_cache::state& cache,
                                                    const std::string& url) {
  if (!cache.knows_store()) co_await query_identity(cache);
  auto& current = co_await this_context_reference();
  if (!cache.has_begun(current.epoch)) co_await begin_epoch_of_run(cache, current);
  auto key = cache.key_of(url, 0);
  if (cache.is_in(cache.uncacheable, key)) {
    ++cache.uncached;
    co_return std::nullopt;
  }
  if (cache.freshness == freshness::once_per_process) co_await query_once(cache, url);
  auto first = co_await obtain_block(cache, url, 0, nullptr);
  if (!first) ++cache.refused;
  bool is_cached = first && (first->is_whole() || !first->etag().empty());
  if (!is_cached) first.reset();
  co_return first;
}

static std::shared_ptr<const byte_reader> reader_of(const std::shared_ptr<disk_cache::state>& cache,
                                                    std::string url, const object_part& first) {
  if (first.is_whole()) return std::make_shared<const kept_reader>(first, without_secrets(url));
  return make_cached_reader(cache,
                            cached_entity(std::move(url), first.object_bytes(), first.etag()));
}

static task<buffer> read_through(disk_cache::state& cache, std::string url) {
  auto content = co_await cache.of->read(std::move(url));
  ++cache.misses;
  cache.fetched_bytes += content.size();
  if (!cache.directory.has_room()) cache.directory.refuse(content.size());
  co_return content;
}

static task<buffer> read_cached(std::shared_ptr<disk_cache::state> cache, std::string url) {
  constexpr auto most_bytes = std::uint64_t{16} << 30;
  auto& current = co_await this_context_reference();
  if (!cache->knows_store()) co_await query_identity(*cache);
  if (cache->has_begun(current.epoch) && cache->freshness == freshness::immutable) {
    auto found = co_await find_file(*cache, cache->key_of(url, 0), 0);
    bool is_whole = found.label && found.label->content_bytes == found.label->object_bytes;
    if (is_whole) co_return count_hit(*cache, found);
  }
  auto first = co_await first_block(*cache, url);
  if (!first) co_return co_await read_through(*cache, std::move(url));
  if (first->is_whole()) co_return first->content();
  auto bytes = first->object_bytes();
  if (bytes > most_bytes)
    throw error(errc::limit_exceeded, "read " + without_secrets(url),
                fmt::format("it has {} bytes: stream or open it", bytes));
  auto whole = co_await allocate(static_cast<std::size_t>(bytes));
  auto done = first->content().size();
  std::memcpy(whole.data(), first->content().data(), done);
  parts_options parts{.part_bytes = cache->block_bytes};
  co_await read_in_parts(reader_of(cache, std::move(url), *first), whole.bytes().subspan(done),
                         done, parts);
  co_return whole;
}

task<buffer> disk_cache::read(std::string url) const { return read_cached(state_, std::move(url)); }

static task<std::shared_ptr<const byte_reader>> open_cached(
    std::shared_ptr<disk_cache::state> cache, std::string url, bool may_be_absent) {
  if (!cache->knows_store()) co_await query_identity(*cache);
  if (may_be_absent) {
    auto cached = co_await open_block(*cache, cache->key_of(url, 0));
    if (!cached) {
      auto there = co_await cache->of->open(url, true);
      if (!there) co_return nullptr;
    }
  }
  auto first = co_await first_block(*cache, url);
  if (!first) co_return co_await cache->of->open(std::move(url), may_be_absent);
  co_return reader_of(cache, std::move(url), *first);
}

task<std::shared_ptr<const byte_reader>> disk_cache::open(std::string url,
                                                          bool may_be_absent) const {
  return open_cached(state_, std::move(url), may_be_absent);
}

static task<object_part> read_cached_part(std::shared_ptr<disk_cache::state> cache, std::string url,
                                          std::uint64_t offset, std::size_t bytes,
                                          std::string etag) {
  auto first = co_await first_block(*cache, url);
  if (!first) co_return co_await cache->of->read_part(url, offset, bytes, std::move(etag));
  if (!etag.empty() && etag != first->etag())
    throw error(errc::changed, "read " + without_secrets(url), "the object has changed");
  auto size = first->object_bytes();
  offset = std::min(offset, size);
  auto from = reader_of(cache, std::move(url), *first);
  auto content = co_await from->read_at(
      offset, static_cast<std::size_t>(std::min<std::uint64_t>(bytes, size - offset)));
  co_return object_part(std::move(content), size, first->etag());
}

task<object_part> disk_cache::read_part(std::string url, std::uint64_t offset, std::size_t bytes,
                                        std::string etag) const {
  return read_cached_part(state_, std::move(url), offset, bytes, std::move(etag));
}

// Removes a chunk from the front of a buffer, and returns it.
static buffer take_chunk(buffer& rest, std::size_t most) {
  auto chunk = rest.slice(0, std::min(most, rest.size()));
  rest = rest.slice(chunk.size(), rest.size() - chunk.size());
  return chunk;
}

static async_generator<buffer> stream_cached(std::shared_ptr<disk_cache::state> cache,
                                             std::string url, stream_options options) {
  auto first = co_await first_block(*cache, url);
  if (!first) {
    auto chunks = cache->of->stream(std::move(url), options);
    while (auto* chunk = co_await chunks.next()) co_yield *chunk;
    co_return;
  }
  auto from = reader_of(cache, std::move(url), *first);
  auto content = first->content();
  first.reset();
  if (options.offset < content.size()) {
    content = content.slice(static_cast<std::size_t>(options.offset),
                            content.size() - static_cast<std::size_t>(options.offset));
    options.offset += content.size();
    while (!content.empty()) {
      auto chunk = take_chunk(content, options.chunk_bytes);
      co_yield chunk;
    }
  }
  content = {};
  parts_options parts{.part_bytes = cache->block_bytes};
  auto blocks = stream_in_parts(std::move(from), options.offset, parts);
  while (auto* block = co_await blocks.next()) {
    auto rest = *block;
    while (!rest.empty()) {
      auto chunk = take_chunk(rest, options.chunk_bytes);
      co_yield chunk;
    }
  }
}

async_generator<buffer> disk_cache::stream(std::string url, stream_options options) const {
  support::require_count("stream " + without_secrets(url), "chunk_bytes", options.chunk_bytes,
                         {.least = 1, .most = ~std::uint64_t{0}});
  return stream_cached(state_, std::move(url), options);
}

task<std::string> disk_cache::identity() const { return state_->of->identity(); }

async_generator<object_info> disk_cache::list(std::string prefix) const {
  return state_->of->list(std::move(prefix));
}

static bool is_same_directory(const std::string& one, std::string_view other) {
  std::error_code is_absent;
  return std::filesystem::equivalent(one, other, is_absent);
}

std::shared_ptr<const disk_cache> mount_disk_cache(std::string_view prefix,
                                                   const disk_cache_options& options) {
  auto upstream = find_store(prefix);
  if (!upstream)
    throw error(errc::invalid_argument, "mount a cache", fmt::format("'{}' is no URL", prefix));
  // Two caches with the same directory would deadlock on each other's locks.
  if (auto* other = dynamic_cast<const disk_cache*>(upstream.get());
      other && is_same_directory(other->directory(), options.directory))
    throw error(
        errc::invalid_argument, "mount a cache at " + without_secrets(prefix),
        fmt::format("the mounted store is already a cache in {} already", options.directory));
  auto cache = std::make_shared<const disk_cache>(std::move(upstream), options);
  mount(prefix, cache);
  return cache;
}

}  // namespace lade::io
