#include <lade/detail/executor.hpp>
#include <lade/error.hpp>
#include <lade/sync_wait.hpp>

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace lade::detail {

void require_blocking_allowed() {
  if (this_executor)
    throw error(errc::wrong_thread, "wait for a task", "a thread of a runtime must not block");
}

void blocking_completion::wait() noexcept {
  while (finished_.load(std::memory_order_acquire) == 0)
    syscall(SYS_futex, &finished_, FUTEX_WAIT_PRIVATE, 0, nullptr, nullptr, 0);
}

// Once `finished_` is set the waiter may be gone, and the address another's: a futex may always be
// woken for nothing.
void blocking_completion::finish(completion& self) noexcept {
  auto& finished = static_cast<blocking_completion&>(self).finished_;
  finished.store(1, std::memory_order_release);
  syscall(SYS_futex, &finished, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

}  // namespace lade::detail
