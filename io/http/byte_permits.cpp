#include "byte_permits.hpp"

namespace lade::io::http {

// Where the first who waits is stopped, the next is let in by the next release: some body is in
// flight as long as anybody waits.
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
