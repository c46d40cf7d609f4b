// How a coroutine's outcome meets the coroutine that awaits it.

#pragma once

#include <atomic>
#include <coroutine>

namespace lade::detail {

// Tells threads apart. Opaque: compilers would reuse the value across a suspension, after which the
// thread may be another. The thread pointer is what every access to a thread_local reads first.
#if defined(__x86_64__)
inline const void* this_thread() noexcept {
  const void* thread = nullptr;
  asm volatile("mov %%fs:0, %0" : "=r"(thread));
  return thread;
}
#else
[[gnu::noinline]] inline const void* this_thread() noexcept {
  static thread_local constinit char here = 0;
  const void* address = &here;
  asm volatile("" : "+r"(address));
  return address;
}
#endif

// A parent calls its child as a plain function; the child arrives at its outcome inside of that
// call, or later, perhaps on another thread. Inside of the call no atomic operation is needed,
// and in neither case does one of them run on top of the other: nothing depends on tail calls.
class rendezvous {
 public:
  // The parent's side: runs the child. Returns whether it has arrived; if not, the parent must
  // suspend, and whoever has arrive() return true resumes it.
  bool call(std::coroutine_handle<> child) {
    arrived_in_call_ = false;
    state_.store(running, std::memory_order_relaxed);
    caller_.store(this_thread(), std::memory_order_relaxed);
    child.resume();
    if (arrived_in_call_) return true;
    caller_.store(nullptr, std::memory_order_relaxed);
    return state_.exchange(awaited, std::memory_order_acq_rel) == arrived;
  }

  // The child's side: its outcome is there. Returns whether the parent waits to be resumed; if
  // not, the child must not be touched any more.
  bool arrive() noexcept {
    if (caller_.load(std::memory_order_relaxed) == this_thread()) {
      arrived_in_call_ = true;
      return false;
    }
    return state_.exchange(arrived, std::memory_order_acq_rel) == awaited;
  }

 private:
  enum : unsigned char { running, awaited, arrived };

  std::atomic<const void*> caller_ = nullptr;  // the thread that is inside of call()
  bool arrived_in_call_ = false;               // touched by that thread only
  std::atomic<unsigned char> state_ = running;
};

}  // namespace lade::detail
