// Two batches that the bare loops of images and of clips fill in turns.

#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <mutex>

#include "bench.hpp"

namespace bench {

// Workers fill one batch while the consumer uses the other. Its memory is kept until the program
// ends.
class batch_pair {
 public:
  batch_pair(std::size_t items, std::size_t batch, std::size_t item_bytes)
      : items_(items),
        batch_(batch),
        item_bytes_(item_bytes),
        memory_(huge_memory(2 * batch * item_bytes + 64)) {
    for (std::size_t b = 0; b < 2; ++b) left_[b] = items_of(b);
  }

  std::size_t batches() const { return (items_ + batch_ - 1) / batch_; }

  // The place of item `index`. Waits until the consumer has released the batch that was there.
  std::byte* slot(std::size_t index) {
    std::size_t batch = index / batch_;
    if (batch >= used_.load(std::memory_order_acquire) + 2) {
      std::unique_lock lock(mutex_);
      free_.wait(lock, [&] { return batch < used_ + 2; });
    }
    return of(batch) + index % batch_ * item_bytes_;
  }
  void filled(std::size_t index) {
    if (--left_[index / batch_ % 2] > 0) return;
    std::lock_guard lock(mutex_);
    full_.notify_one();
  }

  // For the consumer: batch `number` when it is complete, and giving it back.
  const std::byte* wait(std::size_t number) {
    std::unique_lock lock(mutex_);
    full_.wait(lock, [&] { return left_[number % 2] == 0; });
    return of(number);
  }
  void release(std::size_t number) {
    std::lock_guard lock(mutex_);
    left_[number % 2] = items_of(number + 2);
    used_ = number + 1;
    free_.notify_all();
  }

 private:
  std::byte* of(std::size_t batch) { return memory_ + batch % 2 * batch_ * item_bytes_; }
  std::size_t items_of(std::size_t batch) const {
    std::size_t before = std::min(batch * batch_, items_);
    return std::min(batch_, items_ - before);
  }

  std::size_t items_, batch_, item_bytes_;
  std::byte* memory_;
  std::array<std::atomic<std::size_t>, 2> left_;
  std::atomic<std::size_t> used_ = 0;
  std::mutex mutex_;
  std::condition_variable free_, full_;
};

}  // namespace bench
