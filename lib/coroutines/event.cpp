#include <lade/event.hpp>

namespace lade {

void event::set() {
  detail::wait_list woken;
  {
    std::lock_guard lock(mutex_);
    set_ = true;
    woken = waiters_.settle_all();
  }
  woken.resume_all();
}

}  // namespace lade
