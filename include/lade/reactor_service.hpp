// Integrates a library that waits for descriptors and timers by itself, such as libcurl, into a
// runtime.

#pragma once

#include <lade/detail/common/fatal.hpp>
#include <lade/detail/runtime/operation.hpp>
#include <lade/detail/runtime/reactor.hpp>

#include <chrono>
#include <unordered_map>

namespace lade {

// A thread of a runtime that waits for descriptors, timers and system calls. See
// reactor_service::where() for the reactor of a service. Modules use three of its members, and
// leave the others to the library:
//
// - `service<S>()`: its service of class S, created on first use. On its thread only. Rethrows
//   exceptions of the constructor of S.
// - `post({function, argument})`: calls `function(argument)`, a void (*)(void*) noexcept, on its
//   thread. Any thread. Never fails: it blocks while there is no memory for the queue.
// - `close(fd)`: closes a descriptor, without waiting. On its thread only.
using reactor_thread = detail::reactor;

// A timer of a service, beyond its set_timer(): one for each transfer, say. It is set, cancelled
// and called on the thread of one reactor. It must not be set when it is destroyed; then any thread
// may destroy it.
class reactor_timer : private detail::timer {
 public:
  using clock = std::chrono::steady_clock;

  reactor_timer(const reactor_timer&) = delete;
  reactor_timer& operator=(const reactor_timer&) = delete;

  // Calls expired() once, when the time `when` has come. Replaces the time that was set before.
  void set(reactor_thread& where, clock::time_point when) noexcept {
    cancel(where);
    deadline = when;
    where.start(*this);
  }
  void cancel(reactor_thread& where) noexcept { where.remove(*this); }

  bool is_set() const noexcept { return started; }
  clock::time_point when() const noexcept { return deadline; }  // set last

 protected:
  reactor_timer() noexcept {
    fired = [](detail::timer& due) noexcept { static_cast<reactor_timer&>(due).expired(); };
  }
  ~reactor_timer() {
    if (started) detail::fatal("a reactor_timer was destroyed while it is set");
  }

 private:
  // May set the timer again.
  virtual void expired() noexcept = 0;
};

// One object per reactor and class, such as the handle of a transfer library. The service is
// created when a coroutine first asks for it. It is created, called and destroyed on the reactor's
// thread:
//
//   class transfers final : public reactor_service {
//    public:
//     explicit transfers(lade::reactor_thread& where) : reactor_service(where) {}
//    private:
//     void ready(int fd, unsigned events) noexcept override;  // read from or write to `fd`
//     void expired() noexcept override;
//     void end_turn() noexcept override;                      // resume waiting coroutines
//   };
//
// In each turn the reactor calls ready() for every descriptor with events, then expired() if the
// timer is due, then end_turn() once. ready() and expired() must not resume coroutines, because
// these may call the service again: they record which ones to resume, and end_turn() resumes them.
//
// The reactor destroys its services when the runtime ends. Polls that are still armed, such as
// those of idle connections, do not keep a runtime alive and end with it.
//
// Coroutines use a service through an awaiter that derives from service_await.
class reactor_service {
 public:
  using clock = std::chrono::steady_clock;

  explicit reactor_service(reactor_thread& where) noexcept;
  reactor_service(const reactor_service&) = delete;
  reactor_service& operator=(const reactor_service&) = delete;
  virtual ~reactor_service();

 protected:
  // Polls a descriptor for `events` (POLLIN, POLLOUT) until the next call for it, and replaces its
  // earlier events. 0 ends the poll; call it so before the descriptor is closed. A descriptor that
  // cannot be polled is reported as ready with POLLERR. If poll throws std::bad_alloc, the earlier
  // events remain.
  void poll(int fd, unsigned events);

  // Sets the time of the service's own timer: expired() is called then. max(): never.
  void set_timer(clock::time_point when) noexcept;

  // Closes a descriptor asynchronously. Returns without waiting.
  void close(int fd) noexcept { reactor_.close(fd); }

  reactor_thread& where() const noexcept { return reactor_; }

 private:
  friend class detail::reactor;
  struct timer : detail::timer {
    reactor_service* owner = nullptr;
  };

  virtual void ready(int fd, unsigned events) noexcept = 0;
  virtual void expired() noexcept = 0;
  virtual void end_turn() noexcept = 0;

  void arm(int fd, unsigned events);
  void disarm(detail::polled& armed) noexcept;
  void happened(detail::polled& armed) noexcept;

  reactor_thread& reactor_;
  timer timer_;
  std::unordered_map<int, detail::polled*> polls_;
};

// The base of the awaiters of a service. The derived class overrides two functions, which the
// library calls on the reactor's thread:
//
// - `void begin() noexcept`: starts the work. Not called if a stop precedes it.
// - `void end_early() noexcept`: called at most once, after a stop of the coroutine, while the work
//   is in progress. Makes the work end soon, or ends it at once.
//
// It may call these members:
//
// - `complete(after)`: the work has ended, early or not. Must be called once for each begin(), on
//   the reactor's thread; begin() and end_early() may call it. Resumes the coroutine on its
//   executor, so the awaiter may be gone afterwards. `after`: a string literal that names the wait,
//   such as "after a transfer". The watchdog reports it if the coroutine then blocks the reactor.
// - `stopped()`: whether a stop preceded begin(). Valid in await_resume().
// - `ended_early()`: whether there was a stop after the wait had started. Valid in await_resume().
// - `where()`: the reactor. Valid from begin() on.
// - `trace()`: the trace of the run; null if there is none. Valid from begin() on.
//
// The derived class defines await_resume(), which returns the result. If stopped() or ended_early()
// is true, it should throw error(stopped).
//
// - Lifetime: the awaiter lives in the frame of the coroutine. It cannot be copied, and GCC 12
//   copies an awaited object that has a name. So the awaited object is a description, whose const
//   operator co_await returns the awaiter.
// - Errors: the await throws error(no_runtime) outside a runtime.
template <class S>
class service_await : public detail::reactor_await {
 protected:
  // `where`: the reactor whose service already runs the work; null: any reactor of the runtime.
  explicit service_await(reactor_thread* where = nullptr) noexcept : reactor_await(where) {}
  ~service_await() = default;

  // The service of the reactor, created on first use. On the reactor's thread only. Rethrows
  // exceptions of the constructor of S.
  S& service() const { return where().template service<S>(); }
};

}  // namespace lade
