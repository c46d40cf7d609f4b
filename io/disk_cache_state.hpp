// What the functions of a disk cache work with.

#pragma once

#include "cache_block.hpp"
#include "cache_directory.hpp"
#include "flights.hpp"

#include <lade/context.hpp>
#include <lade/io/file.hpp>
#include <lade/io/disk_cache.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace lade::io {

using block_flights = detail::flights<detail::block_key, detail::block_key_hash>;
using block_set = std::unordered_set<detail::block_key, detail::block_key_hash>;

struct disk_cache::state {
  state(std::shared_ptr<const store> cached, const disk_cache_options& options);

  detail::block_key key_of(std::string_view url, std::uint64_t number) const noexcept {
    return detail::key_of_block(url, block_bytes, number);
  }

  // A member of one of the sets below; by the key of the object's first block.
  bool is_in(const block_set& set, const detail::block_key& object) const;
  void add_to(block_set& set, const detail::block_key& object);

  // The checksum that a block was found to have; nothing if it has not been verified.
  std::optional<std::uint32_t> verified_crc(const detail::block_key& block) const;
  void note_verified(const detail::block_key& block, std::uint32_t crc);

  const std::shared_ptr<const store> of;
  const io::freshness freshness;
  const std::size_t block_bytes;
  detail::cache_directory directory;
  block_flights flights;
  std::atomic<std::uint64_t> next_epoch = 0;  // the first that has not begun

  std::atomic<std::uint64_t> hits = 0, hit_bytes = 0, misses = 0, fetched_bytes = 0, waits = 0,
                             refused = 0, uncached = 0, failures = 0, damaged = 0, evicted = 0;

  mutable std::mutex mutex;  // guards what follows
  block_set asked;           // objects that the store has been asked for
  block_set uncacheable;     // objects of which only the first block could be kept
  std::unordered_map<detail::block_key, std::uint32_t, detail::block_key_hash> verified;
};

// The object that blocks belong to.
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

// A block from the disk, or from the store and then on the disk if possible. `of`: the entity that
// it must belong to; null for the first block. All references must outlive the task.
task<object_part> obtain_block(disk_cache::state& cache, const std::string& url,
                               std::uint64_t number, const cached_entity* of);

// The open file of a block, and its label. Its content is not verified.
class labelled_file {
 public:
  labelled_file(std::shared_ptr<const file> opened, detail::block_label found)
      : from(std::move(opened)), label(std::move(found)) {}

  std::shared_ptr<const file> from;
  detail::block_label label;
};

// Nothing if it is not on the disk, or not whole.
task<std::optional<labelled_file>> open_block(disk_cache::state& cache, detail::block_key key);

// An object of several blocks.
std::shared_ptr<const byte_reader> make_cached_reader(std::shared_ptr<disk_cache::state> cache,
                                                      cached_entity of);

}  // namespace lade::io
