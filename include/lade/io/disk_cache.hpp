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

// Whether objects may change behind their names.
enum class freshness : std::uint8_t {
  // Objects never change, as is usual for training data: what is cached is used without asking.
  immutable,

  // The first time that a process reads an object, it asks the store for its entity tag (one small
  // request), and fetches the object anew if that is another or there is none.
  once_per_process,
};

struct disk_cache_options {
  // On a local disk; made if need be, with mode 0700. For one user. Caches of several stores may
  // use it, with one space and one count of epochs: objects are kept by their URL and
  // store::identity(). Stores of which both are the same for different objects, such as those of
  // two accounts of one endpoint with buckets of the same name, need two directories.
  std::string_view directory = {};

  std::uint64_t max_bytes = std::uint64_t{64} << 30;  // of the files in it
  io::freshness freshness = io::freshness::immutable;

  // Verifies the checksum of a block each time that it is read as a whole, rather than the first
  // time that a process reads it; see Integrity below. Costs about 5 us for 100 KB.
  bool verify_every_read = false;

  // What is fetched at a time, 4 KiB to 1 GiB: objects up to that size are one file, longer ones
  // several.
  std::size_t block_bytes = std::size_t{8} << 20;
};

// A store that keeps what it reads from another one in a directory:
//
//   auto cache = lade::io::mount_disk_cache("s3://bucket/", {.directory = "/nvme/cache"});
//   ...
//   std::cerr << to_string(cache->stats());
//
// Processes. All processes of a machine, such as the ranks of a training, may use the directory at
// a time, with the same max_bytes. A block that several want is fetched once; the others wait for
// it: for a minute at most, or 20 s in the same process, should the one that fetches it hang. A
// process may be killed at any time: the directory stays whole.
//
// Integrity. A block has the store's entity tag and checksums (CRC-32C). Its content is verified
// the first time that a process reads it, unless the process has written it itself; its label at
// each read of the whole. A damaged block is removed and fetched anew. All blocks of an object
// belong to one entity: if the object changes while it is cached in part, reads throw
// error(changed) naming it, and the next read begins anew.
//
// Space. What fits stays: within an epoch (run_options::epoch) nothing is evicted, and what has no
// room is read from the store. When a run of a later epoch begins, blocks that nobody used in the
// last one are evicted, the longest unused first, as far as there was no room. Programs without
// epochs call begin_epoch(). When the directory is opened by the first of its processes, blocks
// that were not used in the last two epochs go likewise.
//
// Trouble. If the disk is full or cannot be written to, reads go on from the store; stats() and
// failure() tell. Further blocks are written some seconds later. What is no regular file in the
// place of a block, such as a link or a FIFO, is removed as a damaged block is.
//
// Not cached are objects longer than a block that have no strong entity tag, and listings.
//
// Any thread. Its functions require a runtime, but for those that say otherwise.
class disk_cache final : public store {
 public:
  // `of` must not be null. Blocks while the directory is read. Throws error for a directory that
  // cannot be made or read or belongs to another user, and error(invalid_argument) for a store that
  // is null and for an option that cannot work, which it names.
  // Needs no runtime, as the functions below.
  disk_cache(std::shared_ptr<const store> of, const disk_cache_options& options);

  const std::string& directory() const noexcept;

  cache_statistics stats() const;

  // Why the last block could not be written; empty if all could.
  std::string failure() const;

  // Begins another epoch, as a run of a later one does: for programs whose runs have no epochs, in
  // each process once per epoch. The first of the processes evicts. Blocks.
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

// Mounts a disk cache at `prefix`, of the store that is mounted there. Throws as disk_cache and
// find_store do, and error(invalid_argument) if that store is a cache in the same directory.
std::shared_ptr<const disk_cache> mount_disk_cache(std::string_view prefix,
                                                   const disk_cache_options& options);

}  // namespace lade::io
