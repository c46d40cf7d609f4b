// Waiting for a task from an ordinary thread.

#pragma once

#include <lade/detail/common/futex.hpp>
#include <lade/task.hpp>

#include <cstdint>
#include <utility>

namespace lade {

namespace detail {

// Spins for two microseconds and then sleeps in the kernel. Where it was measured, a thread that
// waits in a std::semaphore, which yields before it sleeps, went on many times later
// (docs/benchmarks.md, engine).
class blocking_completion : public completion {
 public:
  blocking_completion() noexcept : completion{finish} {}
  void wait() noexcept;

 private:
  enum state : std::uint32_t { running, awaited, finished };
  void spin() const noexcept;
  static void finish(completion& self) noexcept;

  futex_word state_ = running;
};

// Throws error(wrong_thread) on a thread of lade's, which must not block.
void require_blocking_allowed();

}  // namespace detail

// Runs a task that needs no runtime and blocks until it has finished. It starts on this thread.
// Tasks that read, sleep or decode need sync_wait(runtime, task) of runtime.hpp. Throws
// error(wrong_thread) on a thread that belongs to a runtime.
template <class T>
T sync_wait(task<T> work) {
  detail::require_blocking_allowed();
  work.require_unstarted();
  detail::blocking_completion done;
  if (!work.start({}, done)) done.wait();
  return work.take();
}

}  // namespace lade
