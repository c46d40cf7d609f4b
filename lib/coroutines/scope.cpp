#include <lade/scope.hpp>

#include <chrono>

namespace lade {

// The interval at which a destructor on a thread of an executor looks for jobs to run.
static constexpr std::chrono::microseconds between_looks{50};

scope::scope(const context& execution) : context_(execution) {
  context_.stop = stop_.get_token();
  if (execution.stop.stop_possible()) on_parent_stop_.emplace(execution.stop, pass_on_stop{*this});
}

scope::~scope() {
  std::unique_lock lock(mutex_);
  if (live_ == 0) return;
  lock.unlock();
  stop();
  lock.lock();
  if (!detail::this_executor) all_ended_.wait(lock, [this] { return live_ == 0; });
  while (live_ > 0) {
    lock.unlock();
    bool busy = detail::this_executor->run_some();
    lock.lock();
    if (!busy) all_ended_.wait_for(lock, between_looks, [this] { return live_ == 0; });
  }
}

void scope::fail(std::exception_ptr failure) noexcept {
  {
    std::lock_guard lock(mutex_);
    if (failure_) return;
    failure_ = std::move(failure);
  }
  stop();
}

void scope::child_ended(std::exception_ptr failure) noexcept {
  if (failure) fail(std::move(failure));
  detail::wait_list woken;
  {
    std::lock_guard lock(mutex_);
    if (--live_ > 0) return;
    woken = joining_.settle_all();
    all_ended_.notify_all();  // under the mutex: after its release, the scope may be destroyed
  }
  woken.resume_all();
}

}  // namespace lade
