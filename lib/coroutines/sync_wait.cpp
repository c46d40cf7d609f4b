#include <lade/detail/runtime/executor.hpp>
#include <lade/error.hpp>
#include <lade/sync_wait.hpp>

#include <chrono>

namespace lade {

namespace detail {

// Spins for less time than falling asleep and being woken takes. See
// docs/decisions/spin-before-sleep.md.
void blocking_completion::spin() const noexcept {
  constexpr auto now = std::chrono::steady_clock::now;
  auto until = now() + std::chrono::microseconds(2);
  while (state_.load(std::memory_order_acquire) == running && now() < until) {}
}

void blocking_completion::wait() noexcept {
  spin();
  std::uint32_t now = running;
  if (!state_.compare_exchange_strong(now, awaited, std::memory_order_acquire)) return;
  while (state_.load(std::memory_order_acquire) == awaited) futex_wait(state_, awaited);
}

// After the exchange, the waiter may have destroyed the completion: only the address of the state
// may be used.
void blocking_completion::finish(completion& self) noexcept {
  auto& state = static_cast<blocking_completion&>(self).state_;
  if (state.exchange(finished, std::memory_order_acq_rel) == awaited) futex_wake_one(&state);
}

}  // namespace detail

void require_blocking_allowed() {
  if (detail::this_executor)
    throw error(errc::wrong_thread, "wait for a task", "a thread of a runtime must not block");
}

}  // namespace lade
