// A cache of remote objects in memory.

#pragma once

#include <lade/io/cache_statistics.hpp>
#include <lade/io/store.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace lade::io {

struct memory_cache_options {
  // Of the contents of all objects together. Their names and entity tags are not counted: some 200
  // bytes and the URL for each, also of objects without a byte.
  std::uint64_t max_bytes = std::uint64_t{1} << 30;

  // Longer objects are read from the store each time.
  std::size_t max_object_bytes = std::size_t{8} << 20;
};

// A store that keeps whole objects of another one in memory, as they are stored; for decoded items
// there is lade::cache:
//
//   lade::io::mount_memory_cache("s3://bucket/labels/", {.max_bytes = 256 << 20});
//
// What fits stays: within an epoch (run_options::epoch) nothing is evicted, and what has no room is
// read from the store. When a run of a later epoch begins, objects that nobody used in the last one
// are evicted, the longest unused first, as far as there was no room. Objects are taken not to
// change behind their names; one that several want is fetched once, unless that takes longer than
// 20 seconds: then the others fetch it too.
//
// The memory belongs to the cache and does not count to the limit of a runtime. What is read is a
// view of it, as a hit copies nothing. Nobody may write to it, as to any buffer that others see;
// nothing would tell: later reads, of this epoch and of others, would get what was written. A stage
// that works in place copies its bytes first.
//
// Any thread. Its functions require a runtime, but for stats() and begin_epoch().
class memory_cache final : public store {
 public:
  // `of` must not be null. Throws error(invalid_argument) for one that is, and for an option that
  // cannot work, which it names.
  memory_cache(std::shared_ptr<const store> of, const memory_cache_options& options = {});

  cache_statistics stats() const;

  // Evicts as when a run of a later epoch begins.
  void begin_epoch() const;

  task<buffer> read(std::string url) const override;
  task<std::shared_ptr<const byte_reader>> open(std::string url, bool may_be_absent) const override;
  async_generator<buffer> stream(std::string url, stream_options options) const override;
  task<object_part> read_part(std::string url, std::uint64_t offset, std::size_t bytes,
                              std::string etag) const override;
  async_generator<object_info> list(std::string prefix) const override;
  task<std::string> identity() const override;

  struct state;

 private:
  std::shared_ptr<state> state_;
};

// Mounts a memory cache at `prefix`, of the store that is mounted there. Throws as memory_cache and
// find_store do.
std::shared_ptr<const memory_cache> mount_memory_cache(std::string_view prefix,
                                                       const memory_cache_options& options = {});

}  // namespace lade::io
