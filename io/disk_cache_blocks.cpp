#include "disk_cache_state.hpp"
#include "whole_file.hpp"

#include <lade/checksum.hpp>
#include <lade/error.hpp>
#include <lade/runtime.hpp>
#include <lade/sleep.hpp>
#include <lade/this_context.hpp>
#include <lade/url.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <string>
#include <tuple>
#include <utility>

#include <fmt/format.h>

namespace lade::io {

using detail::block_key;
using detail::block_label;
using detail::cache_directory;

static void remove_block(cache_directory* from, block_key key) { from->remove(key); }

static task<> remove_damaged(disk_cache::state& cache, block_key key) {
  ++cache.damaged;
  auto& current = co_await this_context_reference();
  co_await current.runtime->pool().run(remove_block, &cache.directory, key);
}

// Whether a file can never be opened as a block. After a transient error, such as too many open
// files, it must not be removed: other processes may read it.
static bool is_no_file(const error& failure) noexcept {
  return failure.code() == errc::failed ||
         failure.code() == std::errc::too_many_symbolic_link_levels ||
         failure.code() == std::errc::no_such_device_or_address;
}

// The hot path of cache hits: it avoids coroutines and copies.
task<found_block> find_file(disk_cache::state& cache, block_key key, std::uint64_t number) {
  auto name = cache.directory.name_of(key);
  auto directory = cache.directory.directory_of(key);
  bool is_absent = directory < 0;
  found_block found;
  if (is_absent) co_return found;
  try {
    found.file = co_await read_if_there(directory, name, is_absent);
  } catch (const error& failure) {
    if (failure.code() == errc::stopped) throw;
    is_absent = !is_no_file(failure);
  }
  if (is_absent) co_return found;
  found.label = detail::decode_label(found.file.bytes(), found.file.size());
  auto& label = found.label;
  bool is_block =
      label && label->key == key && label->offset == number * cache.block_bytes &&
      label->offset <= label->object_bytes &&
      label->content_bytes == std::min(cache.block_bytes, label->object_bytes - label->offset);
  if (is_block && (cache.verify_every_read || !cache.is_verified(key, label->content_crc))) {
    is_block = detail::has_content_of(*label, found.file.bytes());
    if (is_block) cache.mark_verified(key, label->content_crc);
  }
  if (!is_block) {
    label.reset();
    co_await remove_damaged(cache, key);
  }
  co_return found;
}

buffer count_hit(disk_cache::state& cache, const found_block& found) noexcept {
  cache.directory.use().record_use(found.label->key);
  cache.hits.fetch_add(1, std::memory_order_relaxed);
  cache.hit_bytes.fetch_add(found.label->content_bytes, std::memory_order_relaxed);
  return found.file.slice(0, static_cast<std::size_t>(found.label->content_bytes));
}

// Returns the block on the disk if it belongs to `entity`; null accepts any.
static task<std::optional<object_part>> find_block(disk_cache::state& cache, block_key key,
                                                   std::uint64_t number,
                                                   const cached_entity* entity) {
  auto found = co_await find_file(cache, key, number);
  auto& label = found.label;
  bool is_it = label && (!entity ||
                         (label->etag == entity->etag() && label->object_bytes == entity->bytes()));
  if (!is_it) co_return std::nullopt;
  co_return object_part(count_hit(cache, found), label->object_bytes, std::string(label->etag));
}

static task<std::optional<file>> open_if_possible(std::string path) {
  try {
    co_return co_await try_open_own(std::move(path));
  } catch (const error& failure) {
    if (failure.code() == errc::stopped) throw;
  }
  co_return std::nullopt;
}

task<std::optional<labelled_file>> open_block(disk_cache::state& cache, block_key key) {
  auto opened = co_await open_if_possible(cache.directory.path_of(key));
  if (!opened) co_return std::nullopt;
  auto size = opened->size();
  std::array<std::byte, detail::most_label_bytes> memory;
  auto end = std::span(memory).first(std::min<std::uint64_t>(size, memory.size()));
  auto got = co_await opened->read_at(end, size - end.size());
  auto label = detail::decode_label(end.first(got), size);
  if (!label || label->key != key) co_return std::nullopt;
  co_return labelled_file(std::make_shared<const file>(std::move(*opened)), *label);
}

// Waits until no other process fetches the block, for a limited time: the other process may be
// stopped in a debugger.
static task<> lock_block(disk_cache::state& cache, block_key key) {
  constexpr std::chrono::nanoseconds longest_pause = std::chrono::milliseconds(20);
  constexpr std::chrono::nanoseconds longest_wait = std::chrono::minutes(1);
  auto start = std::chrono::steady_clock::now();
  std::chrono::nanoseconds pause = std::chrono::microseconds(200);
  bool waits = false;
  while (!cache.directory.try_lock(key) &&
         std::chrono::steady_clock::now() - start < longest_wait) {
    if (!std::exchange(waits, true)) ++cache.waits;
    co_await sleep(pause);
    pause = std::min(2 * pause, longest_pause);
  }
}

struct block_lock {
  block_lock(cache_directory& locked_directory, block_key held) noexcept
      : directory(locked_directory), key(held) {}
  block_lock(const block_lock&) = delete;
  ~block_lock() { directory.unlock(key); }

  cache_directory& directory;
  block_key key;
};

// Needs the flight and the lock of the first block: their owner may be replacing it.
task<> forget_entity(disk_cache::state& cache, const cached_entity& entity) {
  auto key = cache.key_of(entity.url(), 0);
  auto [flight, leads] = cache.flights.join(key);
  while (!leads) {
    bool has_ended = co_await detail::ends_in_time(flight);
    if (!has_ended) co_return;
    std::tie(flight, leads) = cache.flights.join(key);
  }
  auto& current = co_await this_context_reference();
  block_flights::lead only(cache.flights, key, flight, current);
  co_await lock_block(cache, key);
  block_lock held(cache.directory, key);
  auto cached = co_await open_block(cache, key);
  bool is_it =
      cached && cached->etag == entity.etag() && cached->label.object_bytes == entity.bytes();
  if (is_it) co_await current.runtime->pool().run(remove_block, &cache.directory, key);
}

// Checks that the store returned the requested part: caching another one would corrupt the cache.
static void require_part(const std::string& url, const object_part& got, std::uint64_t offset,
                         std::size_t bytes) {
  auto rest = got.object_bytes() - std::min(offset, got.object_bytes());
  auto expected = std::min<std::uint64_t>(bytes, rest);
  bool is_it = got.content().size() == expected || (offset == 0 && got.is_whole());
  if (is_it) return;
  throw error(errc::invalid_data, "read " + without_secrets(url),
              fmt::format("its store returned {} of the {} bytes from {} on", got.content().size(),
                          expected, offset));
}

// Reads the part. Empty if the object has another version by now.
static task<std::optional<object_part>> part_of_entity(disk_cache::state& cache,
                                                       const cached_entity& entity,
                                                       std::uint64_t offset, std::size_t bytes) {
  std::optional<object_part> got;
  try {
    got = co_await cache.of->read_part(entity.url(), offset, bytes, entity.etag());
  } catch (const error& failure) {
    if (failure.code() != errc::changed) throw;
  }
  bool is_it = got && got->etag() == entity.etag() && got->object_bytes() == entity.bytes();
  if (!is_it) got.reset();
  co_return got;
}

task<object_part> fetch_part(disk_cache::state& cache, const std::string& url, std::uint64_t offset,
                             std::size_t bytes, const cached_entity* entity) {
  std::optional<object_part> got;
  if (entity)
    got = co_await part_of_entity(cache, *entity, offset, bytes);
  else
    got = co_await cache.of->read_part(url, offset, bytes, "");
  if (!got) {
    // While the first block itself is fetched, the one on the disk is not of this entity.
    if (offset >= cache.block_bytes) co_await forget_entity(cache, *entity);
    throw error(errc::changed, "read " + without_secrets(url),
                "the object has changed since a part of it was cached");
  }
  require_part(url, *got, offset, bytes);
  ++cache.misses;
  cache.fetched_bytes += got->content().size();
  co_return *std::move(got);
}

static task<object_part> fetch_block(disk_cache::state& cache, const std::string& url,
                                     std::uint64_t number, const cached_entity* entity) {
  return fetch_part(cache, url, number * cache.block_bytes, cache.block_bytes, entity);
}

static std::pair<cache_directory::outcome, std::uint32_t> write_block(cache_directory* to,
                                                                      block_label label,
                                                                      buffer content) {
  label.content_crc = crc32c(content.bytes()).value();
  return {to->publish(label, content.bytes()), label.content_crc};
}

// Writes a block to the disk if the cache has capacity.
static task<block_flights::outcome> keep_block(disk_cache::state& cache, const std::string& url,
                                               std::uint64_t number, block_key key,
                                               const object_part& part) {
  auto bytes = part.content().size();
  bool is_complete = part.is_whole() || !part.etag().empty();
  bool fits_label = part.etag().size() <= detail::most_label_bytes / 2;
  if (bytes > cache.block_bytes || !is_complete || !fits_label) {
    cache.add_to(cache.uncacheable, cache.key_of(url, 0));
    co_return block_flights::outcome::not_kept;
  }
  if (!cache.directory.may_write()) {
    ++cache.failures;
    co_return block_flights::outcome::not_kept;
  }
  block_label label;
  label.key = key;
  label.object_bytes = part.object_bytes();
  label.offset = number * cache.block_bytes;
  label.content_bytes = bytes;
  label.etag = part.etag();
  auto name = without_secrets(url);
  label.name = name;
  auto& current = co_await this_context_reference();
  auto [outcome, crc] =
      co_await current.runtime->pool().run(write_block, &cache.directory, label, part.content());
  if (outcome == cache_directory::outcome::published) {
    cache.mark_verified(key, crc);
    co_return block_flights::outcome::kept;
  }
  ++(outcome == cache_directory::outcome::full ? cache.refused : cache.failures);
  co_return block_flights::outcome::not_kept;
}

// Fetches a block on behalf of all waiters, in this process and in others.
static task<object_part> fetch_for_waiters(disk_cache::state& cache, const std::string& url,
                                           std::uint64_t number, block_key key,
                                           const cached_entity* entity,
                                           block_flights::lead& flight) {
  co_await lock_block(cache, key);
  block_lock held(cache.directory, key);
  auto found = co_await find_block(cache, key, number, entity);
  if (found) {
    flight.set_result(block_flights::outcome::kept);
    co_return *std::move(found);
  }
  auto part = co_await fetch_block(cache, url, number, entity);
  auto outcome = co_await keep_block(cache, url, number, key, part);
  flight.set_result(outcome);
  co_return part;
}

task<std::optional<object_part>> obtain_block(disk_cache::state& cache, const std::string& url,
                                              std::uint64_t number, const cached_entity* entity) {
  auto key = cache.key_of(url, number);
  auto found = co_await find_block(cache, key, number, entity);
  while (!found) {
    if (!cache.directory.has_room()) co_return std::nullopt;
    auto [flight, leads] = cache.flights.join(key);
    if (leads) {
      auto& current = co_await this_context_reference();
      block_flights::lead lead(cache.flights, key, flight, current);
      co_return co_await fetch_for_waiters(cache, url, number, key, entity, lead);
    }
    ++cache.waits;
    bool has_ended = co_await detail::ends_in_time(flight);
    if (!has_ended || flight->result == block_flights::outcome::not_kept)
      co_return co_await fetch_block(cache, url, number, entity);
    found = co_await find_block(cache, key, number, entity);
  }
  co_return found;
}

}  // namespace lade::io
