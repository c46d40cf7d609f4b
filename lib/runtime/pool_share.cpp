#include <lade/detail/runtime/pool_share.hpp>

#include <utility>

namespace lade::detail {

pool_share::pool_share(executor& pool, unsigned threads)
    : executor(&pool), pool_(pool), turns_(threads) {
  for (auto& each : turns_) free_.push_back(&each);
}

void pool_share::post(job work) noexcept {
  turn* mine = nullptr;
  {
    std::unique_lock lock(mutex_);
    queue_.make_room(lock);  // before the look at free_: it may release the mutex
    if (free_.empty()) return queue_.push(work);
    mine = free_.back();
    free_.pop_back();
  }
  begin(*mine, work);
}

void pool_share::begin(turn& free, job work) noexcept {
  free = {shared_from_this(), work};
  pool_.post({take, &free, work.distance, work.may_wait});
}

void pool_share::take(void* argument) noexcept {
  auto& mine = *static_cast<turn*>(argument);
  auto self = std::move(mine.of);
  auto* outer = std::exchange(this_executor, self.get());
  mine.work();
  this_executor = outer;
  self->end(mine);
}

void pool_share::end(turn& ended) noexcept {
  std::unique_lock lock(mutex_);
  if (queue_.empty()) return free_.push_back(&ended);
  auto next = queue_.pop();
  lock.unlock();
  begin(ended, next);
}

bool pool_share::run_some() noexcept {
  std::unique_lock lock(mutex_);
  if (queue_.empty()) {
    lock.unlock();
    return pool_.run_some();
  }
  auto next = queue_.pop();
  lock.unlock();
  next();
  return true;
}

bool pool_share::has_nearer(unsigned distance) const noexcept {
  {
    std::lock_guard lock(mutex_);
    if (!queue_.empty() && queue_.front().distance < distance) return true;
  }
  return pool_.has_nearer(distance);
}

bool pool_share::has_idle_thread() const noexcept {
  {
    std::lock_guard lock(mutex_);
    if (free_.empty()) return false;
  }
  return pool_.has_idle_thread();
}

}  // namespace lade::detail
