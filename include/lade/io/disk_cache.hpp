// A cache of remote objects on a local disk.

#pragma once

#include <lade/io/cache_statistics.hpp>
#include <lade/io/store.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace lade::io {

// Whether an object may be replaced under the same URL.
enum class freshness : std::uint8_t {
  // Objects are never replaced, as is usual for training data. Cached objects are used without a
  // request.
  immutable,

  // When a process first reads an object, it requests the entity tag from the store (one small
  // request). If the tag differs, or there is none, it fetches the object again.
  once_per_process,
};

struct disk_cache_options {
  // A directory on a local disk, for one user; created with mode 0700 if it does not exist. Caches
  // of several stores may share it: they share its capacity and its epochs. Objects are identified
  // by their URL and store::identity(). If these are equal for different objects, as for accounts
  // of one endpoint with buckets of the same name, each store needs a separate directory.
  std::string_view directory = {};

  std::uint64_t max_bytes = std::uint64_t{64} << 30;  // capacity: size of all files in bytes
  io::freshness freshness = io::freshness::immutable;

  // Verifies the checksum of a block at each read of the whole block, rather than at the first read
  // by each process; see Integrity below. Costs about 5 us for 100 KB.
  bool verify_every_read = false;

  // Size of a block, the unit of fetches: 4 KiB to 1 GiB. Objects up to that size are one file,
  // longer objects are several.
  std::size_t block_bytes = std::size_t{8} << 20;
};

// A store that caches the objects of another store in a directory:
//
//   auto cache = lade::io::mount_disk_cache("s3://bucket/", {.directory = "/nvme/cache"});
//   ...
//   std::cerr << to_string(cache->stats());
//
// Processes. All processes of a machine, such as the ranks of a training, may use the directory
// concurrently, with the same max_bytes. One of them fetches a block; the others wait for it. If
// the fetch hangs, a reader of the same process waits for 20 s, and one of another process for 60
// s. It then fetches the block itself. A process may be killed at any time: the directory stays
// consistent.
//
// Integrity. A block has the store's entity tag and checksums (CRC-32C). Its header is verified
// at each read of the whole block, its content once in each process except its writer. A damaged
// block is removed and fetched again. All blocks of an object belong to one entity: if
// the object changes while it is cached in part, reads throw error(changed) naming it, and the next
// read starts over.
//
// Capacity. Within an epoch (run_options::epoch) nothing is evicted: blocks beyond the capacity are
// read from the store. When a run of a later epoch starts, blocks that the last epoch did not use
// are evicted. The least recently used blocks are evicted first, until the blocks that were
// refused in the last epoch would fit. Programs without epochs call begin_epoch(). The first
// process that opens the directory also evicts blocks that were not used in the last two epochs.
//
// Failures. If the disk is full or not writable, objects are read from the store; stats() and
// failure() report it, and writes resume some seconds later. If the path of a block is not a
// regular file, such as a link or a FIFO, it is removed as a damaged block.
//
// Not cached: objects longer than a block without a strong entity tag, and listings.
//
// Any thread may use it. Tasks and generators require a runtime.
class disk_cache final : public store {
 public:
  // Blocks while it reads the directory. Requires no runtime. Throws error for a directory that
  // cannot be created or read, or that belongs to another user. Throws error(invalid_argument) if
  // `of` is null, and naming an option that is out of range.
  disk_cache(std::shared_ptr<const store> of, const disk_cache_options& options);

  const std::string& directory() const noexcept;

  cache_statistics stats() const;

  // The reason why the last block could not be written; empty if all blocks were written.
  std::string failure() const;

  // Starts another epoch, as a run of a later epoch does. For programs whose runs have no epochs;
  // each process must call it once per epoch. The first process evicts. Blocks.
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

// Mounts a disk cache at `prefix`, in front of the store that is mounted there. Throws as
// disk_cache and find_store do, and error(invalid_argument) if that store is a cache in the same
// directory.
std::shared_ptr<const disk_cache> mount_disk_cache(std::string_view prefix,
                                                   const disk_cache_options& options);

}  // namespace lade::io
