// The directory of a disk cache, which several processes share. Functions may block. They do not
// throw unless stated: a cache continues without a file that it cannot read or write.

#pragma once

#include "cache_block.hpp"
#include "cache_use.hpp"

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace lade::detail {

// Layout (mode 0700 and 0600: for one user):
//
//   lock       advisory locks, which the kernel releases when a process ends. Byte 0: users of the
//              directory. Byte 1: the process that evicts. Other bytes: a fetch of a block.
//   use        see cache_use
//   new/       files being written; those of killed processes are removed
//   0/ - f/    the blocks, by the first digit of their keys
//
// Thread-safe.
class cache_directory {
 public:
  // Creates the directory if it does not exist. Throws error if it cannot be created or read, or
  // belongs to another user.
  cache_directory(std::string path, std::uint64_t limit_bytes);
  cache_directory(const cache_directory&) = delete;
  ~cache_directory();

  const std::string& path() const noexcept { return path_; }
  std::string path_of(const block_key& key) const;

  // The open directory (O_PATH) of a block's file, so that a hit resolves a single name; -1 if
  // there is none.
  int directory_of(const block_key& key) const noexcept { return inner_[key.high >> 60]; }
  static std::string name_of(const block_key& key);

  cache_use& use() noexcept { return *use_; }
  const cache_use& use() const noexcept { return *use_; }
  std::uint64_t limit_bytes() const noexcept { return limit_bytes_; }

  // Locks a block: no other process fetches it until unlock(). Always succeeds if the file `lock`
  // cannot be opened. Neither function blocks.
  bool try_lock(const block_key& key) noexcept;
  void unlock(const block_key& key) noexcept;

  enum class outcome : std::uint8_t { published, full, failed };

  // Writes the file of a block, then renames it to its name.
  outcome publish(const block_label& label, std::span<const std::byte> content);

  void remove(const block_key& key);

  // Removes files that were not used in this epoch nor in the last `past_epochs`, the oldest first,
  // until the refused bytes would fit. Returns the number of removed files. One process at a time
  // evicts, for all.
  std::uint64_t evict(unsigned past_epochs = 1);

  // Whether another block may fit: false once a refused block would still not fit. Does not block.
  bool has_room() const noexcept;

  // Records that a block was not cached for lack of capacity.
  void refuse(std::uint64_t bytes) noexcept;

  // Whether to try writing: false for some seconds after a failure. Does not block.
  bool may_write() const noexcept;

  // The error of the last block that could not be written; empty if there was none.
  std::string failure() const;

 private:
  struct found_block;

  bool lock_byte(std::uint64_t byte, int type, bool waits) const noexcept;
  void open_inner() noexcept;
  void close_all() noexcept;
  bool begin_use();
  void tidy_up(bool is_alone);
  void remove_temporaries(bool is_alone) const;
  std::uint64_t count_blocks(std::vector<found_block>* into) const;
  outcome fail(int error_number);

  std::string path_;
  std::uint64_t limit_bytes_;
  int lock_ = -1;  // the file `lock`; -1 if it cannot be opened
  std::array<int, 16> inner_;
  std::optional<cache_use> use_;
  std::atomic<std::chrono::steady_clock::rep> failed_at_ = 0;
  std::atomic<std::uint64_t> least_refused_ = 0;  // smallest block refused in this epoch; 0: none
  mutable std::mutex mutex_;
  std::string failure_;  // guarded by mutex_
};

}  // namespace lade::detail
