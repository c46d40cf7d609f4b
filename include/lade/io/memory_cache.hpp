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
  // Capacity: size of the contents of all objects in bytes. Metadata is not included: about 200
  // bytes and the URL for each object, also for empty ones.
  std::uint64_t max_bytes = std::uint64_t{1} << 30;

  // Longer objects are read from the store each time.
  std::size_t max_object_bytes = std::size_t{8} << 20;
};

// A store that caches whole objects of another store in memory, as they are stored. For decoded
// items, use lade::cache.
//
//   lade::io::mount_memory_cache("s3://bucket/labels/", {.max_bytes = 256 << 20});
//
// Capacity. Within an epoch (run_options::epoch) nothing is evicted: objects beyond the capacity
// are read from the store. When a run of a later epoch starts, objects that the last epoch did not
// use are evicted. The least recently used objects are evicted first, until the refused objects
// would fit.
//
// Fetches. Objects must not be replaced under the same URL: cached objects are used without a
// request. Concurrent reads of an object share one fetch. If it takes longer than 20 seconds, the
// other readers fetch the object too.
//
// Memory. The cache owns the memory, which does not count to the limit of a runtime. A hit returns
// a view of it and copies nothing. The bytes must not be modified: later reads, also of other
// epochs, would return the modified bytes, without an error. A stage that modifies its input must
// copy the bytes first.
//
// Any thread may use it. All functions but stats() and begin_epoch() require a runtime.
class memory_cache final : public store {
 public:
  // Throws error(invalid_argument) if `of` is null, and naming an option that is out of range.
  memory_cache(std::shared_ptr<const store> of, const memory_cache_options& options = {});

  cache_statistics stats() const;

  // Starts another epoch, as a run of a later epoch does: evicts unused objects.
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

// Mounts a memory cache at `prefix`, in front of the store that is mounted there. Throws as
// memory_cache and find_store do.
std::shared_ptr<const memory_cache> mount_memory_cache(std::string_view prefix,
                                                       const memory_cache_options& options = {});

}  // namespace lade::io
