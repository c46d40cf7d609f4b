// Waiting for a task from an ordinary thread.

#pragma once

#include <lade/task.hpp>

#include <semaphore>
#include <utility>

namespace lade {

namespace detail {

class blocking_completion : public completion {
 public:
  blocking_completion()
      : completion{[](completion& self) noexcept {
          static_cast<blocking_completion&>(self).finished_.release();
        }} {}
  void wait() { finished_.acquire(); }

 private:
  std::binary_semaphore finished_{0};
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
  detail::blocking_completion done;
  if (!work.start({}, done)) done.wait();
  return work.take();
}

}  // namespace lade
