// The directory of a disk cache, which several processes share. Its functions block unless they say
// otherwise, and throw only where they say so: what a cache cannot do, it does without.

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

// Layout, for the user alone (mode 0700 and 0600):
//
//   lock       byte 0 is locked by who uses the directory, byte 1 by who evicts, the others by who
//              fetches a block; the kernel ends a lock with its process, however that ends
//   use        see cache_use
//   new/       files that are being written; those of processes that were killed are removed
//   0/ - f/    the blocks, by the first digit of their keys
//
// Any thread.
class cache_directory {
 public:
  // Makes the directory if need be. Throws error for one that cannot be made or read or belongs to
  // another user.
  cache_directory(std::string path, std::uint64_t limit_bytes);
  cache_directory(const cache_directory&) = delete;
  ~cache_directory();

  const std::string& path() const noexcept { return path_; }
  std::string path_of(const block_key& key) const;

  // The same as a name in an open directory (O_PATH), so that a hit looks up nothing but that name;
  // -1 if there is no directory.
  int directory_of(const block_key& key) const noexcept { return inner_[key.high >> 60]; }
  static std::string name_of(const block_key& key);

  cache_use& use() noexcept { return *use_; }
  const cache_use& use() const noexcept { return *use_; }
  std::uint64_t limit_bytes() const noexcept { return limit_bytes_; }

  // Whether this process may fetch a block, which no other then does until unlock(). Without locks,
  // always. Do not wait.
  bool try_lock(const block_key& key) noexcept;
  void unlock(const block_key& key) noexcept;

  enum class outcome : std::uint8_t { published, full, failed };

  // Writes the file of a block and gives it its name.
  outcome publish(const block_label& label, std::span<const std::byte> content);

  void remove(const block_key& key);

  // Removes files that were not used in the epoch that has ended, nor in this one, the oldest
  // first, as many as it takes to have room for what was refused; in `past_epochs`, not used for so
  // many epochs. Returns how many were removed. One process does it for all.
  std::uint64_t evict(unsigned past_epochs = 1);

  // Whether a block may have room that is not there: false once a block has been refused that would
  // still not fit. Does not wait.
  bool has_room() const noexcept;

  // Notes that a block is read without being kept, for lack of room.
  void refuse(std::uint64_t bytes) noexcept;

  // Whether writing is worth a try: not for some seconds after it has failed. Does not wait.
  bool may_write() const noexcept;

  // Why the last block could not be written; empty if all could.
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
  int lock_ = -1;  // no locks if it cannot be opened
  std::array<int, 16> inner_;
  std::optional<cache_use> use_;
  std::atomic<std::chrono::steady_clock::rep> failed_at_ = 0;
  std::atomic<std::uint64_t> least_refused_ = 0;  // of the blocks refused in this epoch; 0: none
  mutable std::mutex mutex_;
  std::string failure_;  // guarded by mutex_
};

}  // namespace lade::detail
