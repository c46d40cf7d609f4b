// Shared state of the processes that use a disk cache: its size, and which blocks are used.

#pragma once

#include "cache_block.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

namespace lade::detail {

// A file mapped by all processes: a header, and a table with one byte per hash of a block. The byte
// is the epoch of the last use of a block with that hash. So
//   - a hit makes no system call
//   - a killed process loses no record
//   - no process waits for another
// If two blocks have the same hash, the use of one counts for both, so that one is evicted later
// than necessary.
//
// If the file cannot be created (no space, no permission), each process uses private memory.
//
// Epochs have their own numbers, since those of runs restart with each program.
class cache_use {
 public:
  // `is_alone`: no other process has the file open; then a file of another format is replaced.
  // Otherwise such a file is not used. Errors of the file system are not thrown.
  cache_use(const std::string& path, bool is_alone);
  cache_use(const cache_use&) = delete;
  ~cache_use();

  bool is_shared() const noexcept { return is_shared_; }

  // Reserves bytes below the limit. Returns whether they fit.
  bool reserve(std::uint64_t bytes, std::uint64_t limit) noexcept;

  // Releases reserved bytes, but no more than are reserved: files that another program has put into
  // the directory were never counted.
  void release(std::uint64_t bytes) noexcept;
  std::uint64_t used_bytes() const noexcept { return header().used_bytes.load(); }

  // Sets the size of the cache. `counted`: the bytes on the disk, counted while no process writes.
  void set_used_bytes(std::uint64_t counted) noexcept { header().used_bytes.store(counted); }

  // Records bytes that did not fit in this epoch.
  void refuse(std::uint64_t bytes) noexcept { header().refused_bytes.fetch_add(bytes); }
  std::uint64_t take_refused() noexcept { return header().refused_bytes.exchange(0); }

  void record_use(const block_key& key) noexcept;

  // Epochs since the block was last used: 0 if it was used in this one, at most 254.
  unsigned age(const block_key& key) const noexcept;

  // Starts the epoch of a run if no process has started it or a later one. Returns whether it did.
  bool begin_epoch(std::uint64_t of_run) noexcept;

  // Starts another epoch, independent of runs.
  void begin_next_epoch() noexcept { header().sequence.fetch_add(1); }

  // Resets the epoch of runs: another program may start with an earlier one.
  void forget_runs() noexcept { header().run_epoch.store(0); }

 private:
  static constexpr std::size_t header_bytes = 4096;
  static constexpr std::size_t table_bytes = std::size_t{4} << 20;

  struct shared {
    std::atomic<std::uint64_t> magic;  // identifies the format; 0 in a new file
    std::atomic<std::uint64_t> used_bytes;
    std::atomic<std::uint64_t> refused_bytes;
    std::atomic<std::uint64_t> run_epoch;  // the latest, plus 1; 0: none
    std::atomic<std::uint64_t> sequence;   // of epochs
  };
  static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

  shared& header() const noexcept { return *static_cast<shared*>(memory_); }
  std::atomic<std::uint8_t>& byte_of(const block_key& key) const noexcept;
  static std::uint8_t stamp_of(std::uint64_t sequence) noexcept {
    return static_cast<std::uint8_t>(sequence % 255 + 1);
  }

  void* memory_;
  bool is_shared_;
};

}  // namespace lade::detail
