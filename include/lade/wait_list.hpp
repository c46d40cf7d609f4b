// wait_list, waiter: for modules that write awaitables in which coroutines wait for each other,
// such as a custom semaphore.

#pragma once

#include <lade/detail/coroutines/waiter.hpp>

namespace lade {

// The waiters of one awaitable, in the order of their arrival, and the base of its awaiters. A
// std::mutex of the awaitable guards the list, and the state that the coroutines wait for:
//
//   class gate {
//    public:
//     class awaiter : private lade::waiter {
//      public:
//       explicit awaiter(gate& of) noexcept : of_(of) {}
//       bool await_ready() const noexcept { return false; }
//       template <class Promise>
//       bool await_suspend(std::coroutine_handle<Promise> coroutine) {
//         return park(coroutine, of_.mutex_, of_.waiters_, [this] { return of_.is_open_; });
//       }
//       void await_resume() { finish("wait at the gate"); }
//      private:
//       gate& of_;
//     };
//
//     awaiter passed() noexcept { return awaiter(*this); }
//     void open() {
//       lade::wait_list woken;
//       {
//         std::lock_guard lock(mutex_);
//         is_open_ = true;
//         woken = waiters_.settle_all();
//       }
//       woken.resume_all();
//     }
//
//    private:
//     std::mutex mutex_;
//     lade::wait_list waiters_;  // guarded by mutex_, as is_open_
//     bool is_open_ = false;
//   };
//
// A waiter parks (`park`), unless its function returns true under the mutex: then the coroutine
// does not suspend. The function may be called twice, with the mutex released in between: a change
// by its first call must still be valid in the second.
//
// The coroutine that changes the state takes waiters out of the list under the mutex
// (`settle_first`, `settle_all`), and stores in each the value that it waits for. It resumes them
// after it has released the mutex (`resume` of a waiter, `resume_all` of a list). So a resumed
// waiter does not check the state again, and no permit is lost or assigned twice.
//
// - Stop: a parked waiter whose coroutine is asked to stop leaves the list and resumes; `finish`,
//   which await_resume calls first, then throws error(stopped, doing). A settled waiter is no
//   longer stopped. `park_unstoppable` is for waits that a stop must not end.
// - Thread: any. Each coroutine resumes on its executor; without one, inside the call of resume().
// - Lifetime: the awaitable must outlive its waiters. If a waiter is left, `require_empty` in the
//   destructor of the awaitable ends the process.
//
// Functions for awaiters, which derive from waiter:
// - park(coroutine, mutex, list, settled): parks, in await_suspend; whether the coroutine suspends.
// - park_unstoppable(...): the same, for a wait that a stop must not end.
// - finish(doing): first in await_resume; throws error(stopped, doing) after a stop.
//
// Of a waiter that has been taken out of a list: resume(). Of a list, under the mutex: empty(),
// settle_first(), settle_all(); without it: resume_all(). In destructors: require_empty(sentence).
using detail::wait_list;
using detail::waiter;

}  // namespace lade
