// What the processes that share a disk cache know together: how full it is, and what is used.

#pragma once

#include "cache_block.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

namespace lade::detail {

// A file that is mapped by all processes: a header, and a table with a byte for each hash of a
// block, which says in which epoch blocks with that hash were last used. So a hit costs no system
// call, a process that is killed loses nothing, and no process waits for another. Blocks that share
// a byte are taken for used: they stay longer than they would have to.
//
// Where the file cannot be made (no space, no permission), each process has such memory by itself.
//
// Epochs are numbered by a count of their own, since those of runs begin anew with each program.
class cache_use {
 public:
  // `is_alone`: no other process has the file open; it is then made anew unless it is whole. Never
  // throws for reasons of the file system.
  cache_use(const std::string& path, bool is_alone);
  cache_use(const cache_use&) = delete;
  ~cache_use();

  bool is_shared() const noexcept { return is_shared_; }

  // Reserves bytes below the limit. Returns whether they fit.
  bool reserve(std::uint64_t bytes, std::uint64_t limit) noexcept;

  // No more than are reserved: what was never counted, as a file that somebody else has put there,
  // takes nothing off.
  void release(std::uint64_t bytes) noexcept;
  std::uint64_t used_bytes() const noexcept { return header().used_bytes.load(); }

  // What is on the disk has been counted, while nobody writes to it.
  void set_used_bytes(std::uint64_t counted) noexcept { header().used_bytes.store(counted); }

  // Bytes that had no room in this epoch.
  void refuse(std::uint64_t bytes) noexcept { header().refused_bytes.fetch_add(bytes); }
  std::uint64_t take_refused() noexcept { return header().refused_bytes.exchange(0); }

  void record_use(const block_key& key) noexcept;

  // In how many epochs, this one included, the block has not been used: 0 if it has been in this
  // one, 254 at most.
  unsigned age(const block_key& key) const noexcept;

  // Begins the epoch of a run if it is later than all that other processes have begun. Returns
  // whether it was.
  bool begin_epoch(std::uint64_t of_run) noexcept;

  // Begins another one, of whatever runs.
  void begin_next_epoch() noexcept { header().sequence.fetch_add(1); }

  // The processes of another program may begin with an earlier one.
  void forget_runs() noexcept { header().run_epoch.store(0); }

 private:
  static constexpr std::size_t header_bytes = 4096;
  static constexpr std::size_t table_bytes = std::size_t{4} << 20;

  struct shared {
    std::atomic<std::uint64_t> magic;
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
