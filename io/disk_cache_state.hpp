// The state of a disk cache, and the functions on its blocks.

#pragma once

#include "cache_block.hpp"
#include "cache_directory.hpp"
#include "caches.hpp"
#include "flights.hpp"

#include <lade/context.hpp>
#include <lade/io/disk_cache.hpp>
#include <lade/io/file.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

namespace lade::io {

using block_flights = detail::flights<detail::block_key, detail::block_key_hash>;
using block_set = std::unordered_set<detail::block_key, detail::block_key_hash>;

struct disk_cache::state {
  state(std::shared_ptr<const store> cached, const disk_cache_options& options);

  // Whether the store's identity is known. Keys depend on it: call query_identity() before.
  bool knows_store() const noexcept { return knows_store_.load(std::memory_order_acquire); }
  void set_store(std::string_view identity);

  detail::block_key key_of(std::string_view url, std::uint64_t number) const noexcept {
    return detail::key_of_block(store_, url, block_bytes, number);
  }

  // Whether an object is in one of the sets below. `object`: the key of its first block.
  bool is_in(const block_set& set, const detail::block_key& object) const;
  void add_to(block_set& set, const detail::block_key& object);

  // Whether this process has written or verified a block with that checksum.
  bool is_verified(const detail::block_key& block, std::uint32_t crc) const noexcept;
  void mark_verified(const detail::block_key& block, std::uint32_t crc) noexcept;

  bool has_begun(std::uint64_t epoch) const noexcept {
    return detail::counted_epoch(epoch) < next_epoch.load();
  }

  const std::shared_ptr<const store> of;
  const io::freshness freshness;
  const std::size_t block_bytes;
  const bool verify_every_read;
  detail::cache_directory directory;
  block_flights flights;
  std::atomic<std::uint64_t> next_epoch = 0;  // the first epoch that has not started

  std::atomic<std::uint64_t> hits = 0, hit_bytes = 0, misses = 0, fetched_bytes = 0, waits = 0,
                             refused = 0, uncached = 0, failures = 0, damaged = 0, evicted = 0;

  mutable std::mutex mutex;  // guards the two sets
  block_set requested;       // objects for which the store was queried in this process
  block_set uncacheable;     // objects whose later blocks cannot be cached

  // For each hash of a block, a mark of the last verified block. Blocks with the same hash replace
  // each other's marks, and are verified more often.
  std::vector<std::atomic<std::uint64_t>> verified =
      std::vector<std::atomic<std::uint64_t>>(std::size_t{1} << 17);
  static std::uint64_t verified_mark(const detail::block_key& block, std::uint32_t crc) noexcept {
    return (block.high ^ crc) | 1;
  }

 private:
  std::atomic<bool> knows_store_ = false;
  detail::block_key store_;  // a hash of the store's identity, written once
};

// The version of an object to which blocks belong.
class cached_entity {
 public:
  cached_entity(std::string url, std::uint64_t bytes, std::string etag)
      : url_(std::move(url)), bytes_(bytes), etag_(std::move(etag)) {}

  const std::string& url() const noexcept { return url_; }
  std::uint64_t bytes() const noexcept { return bytes_; }
  const std::string& etag() const noexcept { return etag_; }

 private:
  std::string url_;
  std::uint64_t bytes_;
  std::string etag_;
};

// The file of a block.
class found_block {
 public:
  found_block() = default;

  buffer file;
  std::optional<detail::block_label> label;  // a view of `file`; empty if there is no complete
                                             // block
};

// Looks for a block on the disk. Removes it if it is damaged.
task<found_block> find_file(disk_cache::state& cache, detail::block_key key, std::uint64_t number);

// Returns the content of a block that was found, and counts a hit.
buffer count_hit(disk_cache::state& cache, const found_block& found) noexcept;

// Removes the first block of an entity, which identifies its object, if it is still the one on the
// disk. The caller must not be fetching that block. All references must outlive the task, also in
// the functions below.
task<> forget_entity(disk_cache::state& cache, const cached_entity& entity);

// Reads a part of an object from the store. `entity`: the required version; null for the first part
// of an object. If the object has changed, removes it from the cache, and throws error(changed).
task<object_part> fetch_part(disk_cache::state& cache, const std::string& url, std::uint64_t offset,
                             std::size_t bytes, const cached_entity* entity);

// Returns a block from the disk, or else from the store, and then writes it to the disk if
// possible. Empty if it is not on the disk and the cache has no capacity for it.
task<std::optional<object_part>> obtain_block(disk_cache::state& cache, const std::string& url,
                                              std::uint64_t number, const cached_entity* entity);

// The open file of a block, and its label. The content is not verified.
class labelled_file {
 public:
  labelled_file(std::shared_ptr<const file> opened, const detail::block_label& found)
      : from(std::move(opened)), etag(found.etag), label(found) {
    label.etag = label.name = {};
  }

  std::shared_ptr<const file> from;
  std::string etag;
  detail::block_label label;  // without strings
};

// Empty if the block is not on the disk, or not complete.
task<std::optional<labelled_file>> open_block(disk_cache::state& cache, detail::block_key key);

// A reader of an object of several blocks.
std::shared_ptr<const byte_reader> make_cached_reader(std::shared_ptr<disk_cache::state> cache,
                                                      cached_entity entity);

}  // namespace lade::io
