// The queue of the jobs of an executor.

#pragma once

#include <lade/detail/runtime/executor.hpp>

#include <cstddef>
#include <memory>
#include <mutex>

namespace lade::detail {

// A FIFO of jobs in a ring buffer that grows by doubling and never shrinks. So an executor
// allocates only when more jobs wait than ever before. Guarded by the mutex of its owner.
class job_queue {
 public:
  bool empty() const noexcept { return count_ == 0; }
  const job& front() const noexcept { return jobs_[first_]; }

  // Ensures capacity for one more job. `lock`: holds the owner's mutex. If the queue is full and
  // memory is exhausted, releases the mutex and blocks until that changes. Never fails: a coroutine
  // whose job is lost would wait forever.
  void make_room(std::unique_lock<std::mutex>& lock) noexcept;

  // Requires capacity: see make_room().
  void push(job added) noexcept {
    jobs_[(first_ + count_) & (capacity_ - 1)] = added;
    ++count_;
  }

  job pop() noexcept {
    auto first = jobs_[first_];
    first_ = (first_ + 1) & (capacity_ - 1);
    --count_;
    return first;
  }

 private:
  bool grow() noexcept;

  std::unique_ptr<job[]> jobs_;
  std::size_t capacity_ = 0;  // 0, or a power of two
  std::size_t first_ = 0;
  std::size_t count_ = 0;
};

}  // namespace lade::detail
