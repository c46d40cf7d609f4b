#include <lade/detail/runtime/job_queue.hpp>

#include <algorithm>
#include <chrono>
#include <new>
#include <thread>
#include <utility>

namespace lade::detail {

void job_queue::make_room(std::unique_lock<std::mutex>& lock) noexcept {
  while (count_ == capacity_ && !grow()) {
    lock.unlock();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    lock.lock();
  }
}

bool job_queue::grow() noexcept {
  auto larger = std::max<std::size_t>(64, 2 * capacity_);
  std::unique_ptr<job[]> jobs(new (std::nothrow) job[larger]);
  if (!jobs) return false;
  for (std::size_t i = 0; i < count_; ++i) jobs[i] = jobs_[(first_ + i) & (capacity_ - 1)];
  jobs_ = std::move(jobs);
  capacity_ = larger;
  first_ = 0;
  return true;
}

}  // namespace lade::detail
