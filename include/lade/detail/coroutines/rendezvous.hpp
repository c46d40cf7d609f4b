// rendezvous: passes control from a task or generator back to the coroutine that awaits it.

#pragma once

#include <lade/detail/coroutines/atomic.hpp>

#include <atomic>
#include <coroutine>

namespace lade::detail {

// A value that identifies the current thread. It is opaque to the compiler, which would otherwise
// reuse it after a suspension, when the coroutine may run on another thread. The first variant
// reads the thread pointer, as every access to a thread_local does.
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

// When the child of an await arrives at its result.
enum class arrival : unsigned char {
  within_call,  // on the thread of the parent, before its call has returned
  elsewhere,    // on another thread, before the call has returned
  later,        // the child has not arrived yet
};

// One await: a parent calls its child as a plain function, and the child arrives at its result
// within that call or later, perhaps on another thread. Unless it arrives within the call, each
// side exchanges the state once, and the second one continues the parent:
//
//   running ── call() returns later ─────> awaited ── arrive() returns true: resume the parent
//   running ── arrive() returns false ───> arrived ── call() returns elsewhere
//
// - No wake-up is lost: the second exchange returns the value of the first.
// - A child that arrives elsewhere has suspended: so the parent continues on its own executor.
// - A child that arrives within the call needs no atomic read-modify-write operation. It returns to
//   its parent, so a loop over such children uses no stack, and nothing depends on tail calls.
// - May be used again after the parent has been continued: a generator arrives once per value.
class rendezvous {
 public:
  // For the parent: resumes the child. If it arrives later, the parent must stay suspended, and the
  // caller of arrive() resumes it.
  arrival call(std::coroutine_handle<> child) {
    arrived_in_call_ = false;
    state_.store(running, std::memory_order_relaxed);
    caller_.store(this_thread(), std::memory_order_relaxed);
    child.resume();
    if (arrived_in_call_) return arrival::within_call;
    caller_.store(nullptr, std::memory_order_relaxed);
    auto before = state_.exchange(awaited, std::memory_order_acq_rel);
    return before == arrived ? arrival::elsewhere : arrival::later;
  }

  // For the child, once its result is stored. Returns whether the child must resume the parent. If
  // not, the parent may destroy the child at once, so the caller must not access it any more.
  bool arrive() noexcept {
    if (caller_.load(std::memory_order_relaxed) == this_thread()) {
      arrived_in_call_ = true;
      return false;
    }
    return state_.exchange(arrived, std::memory_order_acq_rel) == awaited;
  }

 private:
  enum : unsigned char { running, awaited, arrived };

  atomic<const void*> caller_ = nullptr;  // thread that is inside call(); null: none
  bool arrived_in_call_ = false;          // accessed by that thread only
  atomic<unsigned char> state_ = running;
};

}  // namespace lade::detail
