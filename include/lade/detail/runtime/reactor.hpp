// The thread that waits for the operating system: what its backends have in common.

#pragma once

#include <lade/detail/runtime/activity.hpp>
#include <lade/detail/runtime/executor.hpp>
#include <lade/detail/runtime/job_queue.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace lade {

class reactor_service;

}  // namespace lade

namespace lade::detail {

using clock = std::chrono::steady_clock;

// A system call to make, owned by whoever submits it, until `completed` is called on the reactor
// thread. It must stay where it is until then, also when it is cancelled: the kernel writes to it.
// A descriptor that it names stays open until then.
struct io_operation {
  enum class kind : std::uint8_t { open, read, stat, close, poll };
  enum class status : std::uint8_t { outside, queued, begun, cancelling, done };

  kind what = kind::read;
  int fd = -1;                 // open, stat: the directory; read, close, poll: the file
  const char* path = nullptr;  // open, stat
  int flags = 0;               // open: O_ flags; stat: AT_ flags; poll: the POLL events to wait for
  void* data = nullptr;        // read: where to; stat: the struct statx to fill
  std::size_t bytes = 0;       // read: at most max_bytes are read
  std::uint64_t offset = 0;    // read; ignored by files that cannot seek
  bool direct = false;         // read: from a file opened with O_DIRECT
  bool apart = false;          // read: of a regular file, on another thread: its copy takes long
  bool background = false;     // nobody waits for it: not counted as in flight
  std::int64_t result = 0;     // what the system call returned, or -errno
  void (*completed)(io_operation&) noexcept = nullptr;

  static constexpr std::size_t max_bytes = std::size_t{1} << 30;

  // The reactor's own.
  status progress = status::outside;
  int watched = -1;  // fallback: the descriptor that epoll watches for it
  io_operation* previous = nullptr;
  io_operation* next = nullptr;
};

// A FIFO of operations, linked through themselves: it never allocates.
class operation_queue {
 public:
  bool empty() const noexcept { return first_ == nullptr; }
  void push(io_operation& last, io_operation::status progress) noexcept;
  io_operation* pop() noexcept;  // null when empty
  void remove(io_operation& member) noexcept;
  bool contains(const io_operation& operation) const noexcept;  // takes linear time

 private:
  io_operation* first_ = nullptr;
  io_operation* last_ = nullptr;
};

// A call of `fired` at a deadline, on the reactor thread. Owned by whoever starts it; it must stay
// where it is until it has fired or has been removed.
struct timer {
  clock::time_point deadline;
  void (*fired)(timer&) noexcept = nullptr;

  // The reactor's own.
  bool started = false;
  timer* child = nullptr;     // the first of those that are due later
  timer* previous = nullptr;  // among the children of one timer; of the first: that timer
  timer* next = nullptr;
};

// A pairing heap of timers, linked through themselves: it never allocates.
class timer_heap {
 public:
  timer* first() const noexcept { return root_; }  // null when empty
  void insert(timer& added) noexcept;
  void remove(timer& member) noexcept;

 private:
  static timer* meld(timer* a, timer* b) noexcept;
  static timer* meld_all(timer* first) noexcept;

  timer* root_ = nullptr;
};

class reactor;

// A descriptor that a service polls. Owned by the reactor, since the kernel refers to it until it
// has completed, which may be after the service's end.
struct polled : io_operation {
  reactor_service* owner = nullptr;  // null: the service wants no more of it
  reactor* where = nullptr;
  bool armed = false;  // submitted and not completed
  std::list<polled>::iterator self;
};

// The address that stands for a class of services.
template <class S>
inline constexpr char service_key = 0;

// Runs jobs, fires timers, and completes operations, all on one thread of its own. It is never
// blocked. A backend says how to begin operations and how to wait. Nothing throws on that thread:
// an operation that cannot be begun completes with the error.
class reactor : public executor {
 public:
  reactor();
  virtual ~reactor();

  // "io_uring" or "fallback", with what a person may want to know of it.
  virtual std::string describe() const = 0;

  void post(job work) noexcept final;
  bool run_some() noexcept final;

  // What its thread is doing. Any thread.
  activity& current() noexcept { return activity_; }

  // The members below are for the reactor thread only.

  // Starts the operation; its completion comes in a later turn of the loop, never in this call.
  void submit(io_operation& operation) noexcept;

  // Asks for an early end of a submitted operation. It completes all the same, with -ECANCELED or
  // with its result. Never dropped: if the kernel cannot take the request now it is kept.
  void cancel(io_operation& operation) noexcept;

  // The reactor's service of class S, made by S(*this) if it has none yet. Throws what that throws.
  template <class S>
  S& service() {
    auto* found = find_service(&service_key<S>);
    if (!found) found = &add_service(&service_key<S>, std::make_unique<S>(*this));
    return static_cast<S&>(*found);
  }

  // For services: a poll to submit, in the background, and to remove when it is not submitted.
  polled& add_poll();
  void remove_poll(polled& ended) noexcept { polls_.erase(ended.self); }

  // The operations submitted and not completed, without those in the background.
  std::size_t in_flight() const noexcept { return in_flight_; }

  // Closes a descriptor, some time soon, without waiting for it.
  virtual void close(int fd) noexcept = 0;

  void start(timer& deadline) noexcept;
  void remove(timer& deadline) noexcept;  // does nothing when it has fired

  // `busy`, which must not throw, is called on the reactor's thread whenever that has used most of
  // a CPU for some milliseconds. To be set before the thread is started.
  void report_busy(std::function<void()> busy) { busy_ = std::move(busy); }

  // Reports that. On the reactor's thread.
  void record_busy() const noexcept {
    if (busy_) busy_();
  }

  // Starts the thread; the backend's constructor has run. Throws what enter_thread throws. `stop`
  // makes the thread return when no posted job is left, and joins it, if it was started; no
  // operation or timer may be outstanding.
  void start_thread();
  void stop_thread();

 protected:
  // Begins what is in submitted_ and waits until an operation ends, wake() is called or the time
  // has come, whichever is first; then calls `finish` for all that has ended. A `deadline` of
  // min() means: do not wait.
  virtual void turn(clock::time_point deadline) noexcept = 0;

  // Ends an operation that `turn` has begun early, if that is possible.
  virtual void cancel_begun(io_operation& operation) noexcept = 0;

  // Makes a waiting or the next turn return. Any thread.
  virtual void wake() noexcept = 0;

  // Called at the start of the reactor thread, before the first turn. May throw.
  virtual void enter_thread() {}

  // For poll and epoll_wait: the time that is left, rounded up; -1 for a deadline of max().
  static int wait_milliseconds(clock::time_point deadline) noexcept;

  // Notes that an operation has ended. Owners are told when the turn is over, so that all its
  // completions are in before the first of them wakes another thread.
  void finish(io_operation& operation, std::int64_t result) noexcept;

  operation_queue submitted_;  // and not yet begun

 private:
  void loop() noexcept;
  void run_posted() noexcept;
  void run_taken() noexcept;
  void fire_timers() noexcept;
  void complete_done() noexcept;
  void measure_load() noexcept;
  reactor_service* find_service(const void* key) const noexcept;
  reactor_service& add_service(const void* key, std::unique_ptr<reactor_service> added);
  void end_turn_of_services() noexcept;
  void end_services() noexcept;

  activity activity_;
  std::mutex mutex_;
  job_queue posted_;     // guarded by mutex_
  bool ending_ = false;  // guarded by mutex_
  std::atomic<bool> asleep_ = false;
  job_queue taken_;  // the posted jobs of this turn
  timer_heap timers_;
  operation_queue done_;
  std::size_t in_flight_ = 0;
  std::vector<std::pair<const void*, std::unique_ptr<reactor_service>>> services_;
  std::list<polled> polls_;  // of services, also of those that have ended
  std::function<void()> busy_;
  unsigned turns_ = 0;
  clock::time_point measured_at_;            // when the load was measured last
  std::chrono::nanoseconds measured_cpu_{};  // CPU time of the thread then
  std::thread thread_;
};

// The reactor of this thread; null on threads of no reactor.
reactor* current_reactor() noexcept;

// How a runtime waits for files, sockets and timers.
enum class reactor_kind : std::uint8_t {
  automatic,  // io_uring where the kernel allows it, else the fallback
  io_uring,
  fallback,  // poll, and threads for files
};

// Makes the reactor that was asked for: `automatic` is io_uring where the kernel allows it, else
// the fallback. Throws error with the kernel's reason if io_uring is demanded and refused.
std::unique_ptr<reactor> make_reactor(reactor_kind kind);

}  // namespace lade::detail
