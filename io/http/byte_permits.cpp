#include "byte_permits.hpp"

namespace lade::io::http {

// If the first waiter is cancelled, the next one waits for the next release. That release happens:
// a body is in flight while anyone waits.
void byte_permits::release(std::uint64_t bytes) {
  wait_list woken;
  {
    std::lock_guard lock(mutex_);
    in_flight_ -= bytes;
    while (!waiters_.empty()) {
      auto& first = static_cast<awaiter&>(*waiters_.first());
      if (!fits(first.bytes_)) break;
      in_flight_ += first.bytes_;
      woken.push_back(*waiters_.settle_first());
    }
  }
  woken.resume_all();
}

}  // namespace lade::io::http
