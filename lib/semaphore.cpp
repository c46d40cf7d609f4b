#include <lade/semaphore.hpp>

namespace lade {

void semaphore::release(std::size_t permits) {
  detail::wait_list woken;
  {
    std::lock_guard lock(mutex_);
    permits_ += permits;
    while (permits_ > 0 && !waiters_.empty()) {
      --permits_;
      woken.push_back(*waiters_.settle_first());
    }
  }
  woken.resume_all();
}

}  // namespace lade
