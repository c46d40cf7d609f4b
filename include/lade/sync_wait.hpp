// Blocks an ordinary thread until a task has finished.

#pragma once

#include <lade/detail/common/futex.hpp>
#include <lade/task.hpp>

#include <cstdint>
#include <utility>

namespace lade {

namespace detail {

// Spins for two microseconds, then sleeps in the kernel. A std::semaphore yields before it sleeps;
// in measurements a thread that waits in one resumed many times later (docs/benchmarks.md, engine).
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

}  // namespace detail

// For functions that block until other threads have done something. Throws error(wrong_thread) on a
// thread of a runtime or of a thread_pool, which must not block: it may be the one that is waited
// for.
void require_blocking_allowed();

// Runs a task that needs no runtime, and blocks until it has finished. Starts it on the calling
// thread. Tasks that read, sleep or decode require sync_wait(runtime, task) of runtime.hpp. Throws
// error(wrong_thread) on a thread of a runtime.
template <class T>
T sync_wait(task<T> work) {
  require_blocking_allowed();
  work.require_unstarted();
  detail::blocking_completion done;
  if (work.start({}, done) == detail::arrival::later) done.wait();
  return work.take();
}

}  // namespace lade
