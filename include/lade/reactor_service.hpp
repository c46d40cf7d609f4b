// Services of a reactor: how a library that waits for descriptors and timers by itself, such as
// libcurl, becomes part of a runtime.

#pragma once

#include <lade/detail/runtime/operation.hpp>
#include <lade/detail/runtime/reactor.hpp>

#include <chrono>
#include <unordered_map>

namespace lade {

// A thread of a runtime that waits for descriptors, timers and system calls. Services know theirs.
using reactor_thread = detail::reactor;

// An object per reactor and class, such as the handle of a transfer library. It is made when a
// coroutine first asks for it, and lives, is called and dies on the reactor's thread:
//
//   class transfers final : public reactor_service {
//    public:
//     explicit transfers(lade::reactor_thread& where) : reactor_service(where) {}
//    private:
//     void ready(int fd, unsigned events) noexcept override;  // read from or write to `fd`
//     void expired() noexcept override;
//     void end_turn() noexcept override;                      // resume who waits
//   };
//
// In each turn the reactor calls ready() for every descriptor with events, then expired() if the
// timer is due, then end_turn() once. A service resumes coroutines in end_turn() only: they may
// call the service again.
//
// When the runtime ends, the reactor destroys its services. Polls that are still armed then, as
// those of idle connections are, end with them; they do not keep a runtime alive.
//
// Coroutines reach a service through an awaitable that derives from service_await.
class reactor_service {
 public:
  using clock = std::chrono::steady_clock;

  explicit reactor_service(reactor_thread& where) noexcept;
  reactor_service(const reactor_service&) = delete;
  reactor_service& operator=(const reactor_service&) = delete;
  virtual ~reactor_service();

 protected:
  // Polls a descriptor for these events (POLLIN, POLLOUT), and no others, until told otherwise.
  // None ends that, which must happen before the descriptor is closed. A descriptor that cannot be
  // polled is ready for POLLERR. Throws std::bad_alloc, and polls as before.
  void poll(int fd, unsigned events);

  // Has expired() called at that time, and at no other. max(): never.
  void set_timer(clock::time_point when) noexcept;

  // Closes a descriptor soon, without waiting for it.
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

// The base of what coroutines await of a service. On the reactor's thread, begin() starts the work
// and end_early() makes it end soon after a stop; `complete("after a transfer")` resumes the
// coroutine, once, where it belongs.
template <class S>
class service_await : public detail::reactor_await {
 protected:
  // `where`: the reactor of the service, for work that it has begun; null: any of the runtime.
  explicit service_await(reactor_thread* where = nullptr) noexcept : reactor_await(where) {}
  ~service_await() = default;

  // On the reactor's thread. Makes the service if need be, and throws what that throws.
  S& service() const { return where().template service<S>(); }
};

}  // namespace lade
