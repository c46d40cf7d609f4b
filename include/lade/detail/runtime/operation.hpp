// Awaiters that a reactor completes: of a system call, or of a point in time.

#pragma once

#include <lade/detail/coroutines/atomic.hpp>
#include <lade/detail/coroutines/mutex.hpp>
#include <lade/detail/coroutines/parked_coroutine.hpp>
#include <lade/detail/runtime/reactor.hpp>

#include <coroutine>
#include <optional>
#include <stop_token>

namespace lade::detail {

// The base of awaiters that a reactor completes. The work begins on the reactor's thread. The
// coroutine resumes on its executor, which may be another. If the coroutine is asked to stop, the
// work is ended early. Lives in the frame of the coroutine.
class reactor_await : private parked_coroutine {
 public:
  bool await_ready() const noexcept { return false; }

  // Throws error(no_runtime) if the coroutine does not belong to a runtime.
  template <class Promise>
  bool await_suspend(std::coroutine_handle<Promise> coroutine) {
    return suspend(coroutine, base_of(coroutine));
  }

 protected:
  reactor_await() = default;
  explicit reactor_await(reactor* where) noexcept : reactor_(where) {}  // null: any of the runtime
  ~reactor_await() = default;

  // On the reactor's thread. begin() starts the work. At its end, the derived class calls
  // complete() once. end_early() makes it end soon.
  virtual void begin() noexcept = 0;
  virtual void end_early() noexcept = 0;

  // On the reactor's thread: the work has ended. `after`: its name, for the watchdog.
  void complete(const char* after) noexcept;

  // stopped(): whether a stop preceded begin(), which then was not called. ended_early(): whether
  // there was a stop at any time.
  bool stopped() const noexcept { return stopped_; }
  bool ended_early() const noexcept { return ended_early_; }

  reactor& where() const noexcept { return *reactor_; }
  lade::trace* trace() const noexcept { return execution()->trace; }

 private:
  struct request_stop {
    reactor_await& self;
    void operator()() const noexcept;
  };

  bool suspend(std::coroutine_handle<> coroutine, const promise_base* base);
  void begin_on_reactor() noexcept;
  void stop_on_reactor() noexcept;

  reactor* reactor_ = nullptr;
  std::optional<stop_callback<request_stop>> on_stop_;
  atomic<bool> stop_posted_ = false;  // stop_on_reactor is in the reactor's queue
  bool begun_ = false;
  bool completed_ = false;
  bool stopped_ = false;
  bool ended_early_ = false;
};

// `co_await operation({...})` makes the system call and returns its result (>= 0, or -errno). If
// the coroutine is asked to stop, it returns -ECANCELED. It repeats the call after a signal
// (-EINTR). The kernel uses the buffer and the path until the await returns.
//
// Awaiters of the reactor cannot be copied, and GCC 12 copies an awaiter that is named in a
// co_await expression. So the awaited object is a description, which constructs its awaiter inside
// the await.
class operation {
 public:
  class awaiter;

  explicit operation(const io_operation& call) noexcept : call_(call) {}
  awaiter operator co_await() const noexcept;

 private:
  io_operation call_;
};

class operation::awaiter final : public reactor_await, private io_operation {
 public:
  explicit awaiter(const io_operation& call) noexcept;

  std::int64_t await_resume() const noexcept;

 private:
  void ended() noexcept;
  void record() const noexcept;
  void begin() noexcept override;
  void end_early() noexcept override;

  clock::time_point begun_at_ = {};  // if there is a trace
};

inline operation::awaiter operation::operator co_await() const noexcept { return awaiter(call_); }

// `co_await sleep_until(time)` suspends until the time. Returns false if the coroutine is asked to
// stop before.
class sleep_until {
 public:
  class awaiter;

  explicit sleep_until(clock::time_point time) noexcept : time_(time) {}
  awaiter operator co_await() const noexcept;

 private:
  clock::time_point time_;
};

class sleep_until::awaiter final : public reactor_await, private timer {
 public:
  explicit awaiter(clock::time_point time) noexcept;

  bool await_resume() const noexcept { return slept_; }

 private:
  void begin() noexcept override;
  void end_early() noexcept override;

  bool slept_ = false;
};

inline sleep_until::awaiter sleep_until::operator co_await() const noexcept {
  return awaiter(time_);
}

}  // namespace lade::detail
