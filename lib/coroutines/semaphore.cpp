#include <lade/error.hpp>
#include <lade/semaphore.hpp>

#include <limits>

#include <fmt/format.h>

namespace lade {

void semaphore::release(std::size_t permits) {
  detail::wait_list woken;
  {
    std::lock_guard lock(mutex_);
    if (permits > std::numeric_limits<std::size_t>::max() - permits_)
      throw error(errc::invalid_argument, "release a semaphore",
                  fmt::format("{} permits and those that are free are too many", permits));
    permits_ += permits;
    while (permits_ > 0 && !waiters_.empty()) {
      --permits_;
      woken.push_back(*waiters_.settle_first());
    }
  }
  woken.resume_all();
}

}  // namespace lade
