// permits: a semaphore whose number of permits changes while they are in use.

#pragma once

#include <lade/semaphore.hpp>

#include <algorithm>
#include <cstddef>
#include <mutex>
#include <utility>

namespace lade::detail {

// At most most() permits. If set_most() leaves fewer permits than are in use, released permits are
// withdrawn until the number fits. Any thread may call all functions.
class permits {
 public:
  explicit permits(std::size_t most) noexcept : most_(most), free_(most) {}

  // See semaphore.
  bool try_acquire() { return free_.try_acquire(); }
  [[nodiscard]] semaphore::awaiter acquire() noexcept { return free_.acquire(); }

  void release() {
    if (!withdraw()) free_.release();
  }

  void set_most(std::size_t most) {
    std::size_t added = 0;
    {
      std::lock_guard lock(mutex_);
      const auto before = std::exchange(most_, most);
      for (auto i = most; i < before; ++i)
        if (!free_.try_acquire()) ++excess_;
      if (most > before) {
        const auto kept = std::min(excess_, most - before);
        excess_ -= kept;
        added = most - before - kept;
      }
    }
    if (added > 0) free_.release(added);
  }

  std::size_t most() const {
    std::lock_guard lock(mutex_);
    return most_;
  }

 private:
  bool withdraw() {
    std::lock_guard lock(mutex_);
    if (excess_ == 0) return false;
    --excess_;
    return true;
  }

  mutable std::mutex mutex_;  // guards most_ and excess_
  std::size_t most_;
  std::size_t excess_ = 0;  // permits in use beyond most_
  semaphore free_;
};

}  // namespace lade::detail
