// reactor: a thread that waits for system calls and timers. The common part of its backends.

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

// A system call. Owned by the caller of reactor::submit(). From then until the call of `completed`,
// on the reactor's thread, it must not move, its memory must live and its descriptor must stay
// open. A cancellation does not end this: the kernel may still write to the memory.
//
//   outside ── submit() ──> queued ── turn() ──> started ── finish() ──> done ──> completed()
//
// cancel() finishes a queued operation at once, and lets the backend cancel a started one.
struct io_operation {
  enum class kind : std::uint8_t { open, read, stat, close, poll };
  enum class status : std::uint8_t { outside, queued, started, cancelling, done };

  kind what = kind::read;
  int fd = -1;                 // open, stat: the directory; read, close, poll: the file
  const char* path = nullptr;  // open, stat
  int flags = 0;               // open: O_ flags; stat: AT_ flags; poll: POLL events to wait for
  void* data = nullptr;        // read: destination; stat: the struct statx to fill
  std::size_t bytes = 0;       // read: at most max_bytes are read
  std::uint64_t offset = 0;    // read; ignored by files that cannot seek
  bool direct = false;         // read: the file was opened with O_DIRECT
  bool apart = false;          // read: a regular file; on another thread, because the copy is long
  bool background = false;     // nobody awaits it: not counted by reactor::in_flight()
  std::int64_t result = 0;     // result of the system call, or -errno
  void (*completed)(io_operation&) noexcept = nullptr;

  static constexpr std::size_t max_bytes = std::size_t{1} << 30;

  // For the reactor only.
  status progress = status::outside;
  int watched = -1;  // fallback: the descriptor in epoll, which may be a duplicate of `fd`
  io_operation* previous = nullptr;
  io_operation* next = nullptr;
};

// An intrusive FIFO of operations. Never allocates.
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

// Calls `fired` at the deadline, on the reactor's thread. Owned by the caller of reactor::start();
// must not move until it has fired or has been removed.
struct timer {
  clock::time_point deadline;
  void (*fired)(timer&) noexcept = nullptr;

  // For the reactor only: a node of a pairing heap, or of the list of posted timers.
  bool posted = false;
  bool started = false;
  timer* child = nullptr;     // first child; children are not due earlier than their parent
  timer* previous = nullptr;  // previous sibling; of the first child, the parent
  timer* next = nullptr;      // next sibling
};

// An intrusive pairing heap of timers. Never allocates.
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

// A descriptor that a service polls. Owned by the reactor: the operation may complete after the
// service has ended.
struct polled : io_operation {
  reactor_service* owner = nullptr;  // null: the service no longer polls it
  reactor* where = nullptr;
  bool armed = false;  // submitted and not completed
  std::list<polled>::iterator self;
};

// Its address identifies a class of services.
template <class S>
inline constexpr char service_key = 0;

// Runs jobs, fires timers and completes operations on one dedicated thread, which must never block.
// Each turn of its loop:
//
//   run posted jobs ─> fire timers ─> end_turn() of services ─> turn(): begin operations, wait ─┐
//          ↑                                                                                    │
//          └─────────────────── completed() of all operations that have ended <─────────────────┘
//
// - Backend: implements turn(), cancel_begun() and wake(). See uring and fallback.
// - Threads: post() and withdraw() may be called on any thread. Except where noted, all other
//   members are for the reactor's thread and take no lock.
// - Wake-ups: the loop sets asleep_ before its last look at posted_ and posted_timers_, under
//   mutex_. post() adds to one of them under mutex_, then wakes the loop if asleep_ is set. So no
//   job or timer waits in a sleeping reactor.
// - Errors: nothing throws on the reactor's thread. An operation that cannot begin completes with
//   the error.
class reactor : public executor {
 public:
  reactor();
  virtual ~reactor();

  // A description for people, which begins with "io_uring" or "fallback". Any thread.
  virtual std::string describe() const = 0;

  void post(job work) noexcept final;
  bool run_some() noexcept final;

  // The current step of the thread. Any thread.
  activity& current() noexcept { return activity_; }

  // The members below, up to report_busy(), are for the reactor's thread only.

  // Submits the operation. Never calls `completed` within this call.
  void submit(io_operation& operation) noexcept;

  // Cancels a submitted operation. It still completes once, with -ECANCELED or with its result. The
  // request is never lost: if the kernel cannot take it now, a later turn submits it.
  void cancel(io_operation& operation) noexcept;

  // Returns the reactor's service of class S. The first call constructs it by S(*this).
  template <class S>
  S& service() {
    auto* found = find_service(&service_key<S>);
    if (!found) found = &add_service(&service_key<S>, std::make_unique<S>(*this));
    return static_cast<S&>(*found);
  }

  // For services: add_poll() returns a background operation to submit. It must not be submitted
  // when it is removed.
  polled& add_poll();
  void remove_poll(polled& ended) noexcept { polls_.erase(ended.self); }

  // The number of operations that are submitted and not completed, except background ones.
  std::size_t in_flight() const noexcept { return in_flight_; }

  // Closes a descriptor, perhaps in a later turn. Does not wait.
  virtual void close(int fd) noexcept = 0;

  void start(timer& deadline) noexcept;
  void remove(timer& deadline) noexcept;  // does nothing if it has fired

  // Any thread. post() has the reactor start a timer. withdraw() takes back a posted timer. It
  // returns false if the reactor has started the timer already.
  void post(timer& deadline) noexcept;
  bool withdraw(timer& deadline) noexcept;

  // Sets a function that is called on the reactor's thread whenever the thread has used most of a
  // CPU for some milliseconds. It must not throw. Must be called before start_thread().
  void report_busy(std::function<void()> busy) { busy_ = std::move(busy); }

  // Calls that function. On the reactor's thread.
  void record_busy() const noexcept {
    if (busy_) busy_();
  }

  // start_thread() must be called after the constructor of the backend. Rethrows an exception of
  // enter_thread(). stop_thread() lets the thread run all posted jobs, ends the services and joins
  // the thread. It requires that no operation or timer is outstanding, and does nothing if the
  // thread was not started.
  void start_thread();
  void stop_thread();

 protected:
  // Begins the operations in submitted_. Waits until an operation ends, wake() is called or the
  // deadline has passed. Then calls finish() for all operations that have ended. `deadline`: min()
  // does not wait.
  virtual void turn(clock::time_point deadline) noexcept = 0;

  // Cancels an operation that turn() has started, if that is possible.
  virtual void cancel_begun(io_operation& operation) noexcept = 0;

  // Ends the wait of the current turn, or of the next one. Any thread.
  virtual void wake() noexcept = 0;

  // Called on the reactor's thread before the first turn. May throw.
  virtual void enter_thread() {}

  // The time left, rounded up, as poll and epoll_wait take it: -1 for a deadline of max().
  static int wait_milliseconds(clock::time_point deadline) noexcept;

  // Records that an operation has ended. Its `completed` is called after the turn, so that all
  // completions of the turn are recorded before the first one wakes another thread.
  void finish(io_operation& operation, std::int64_t result) noexcept;

  operation_queue submitted_;  // operations that are not started yet

 private:
  void loop() noexcept;
  void run_posted() noexcept;
  void run_taken() noexcept;
  void wake_from_post() noexcept;
  void start_posted_timers() noexcept;
  void fire_timers() noexcept;
  void complete_done() noexcept;
  void measure_load() noexcept;
  reactor_service* find_service(const void* key) const noexcept;
  reactor_service& add_service(const void* key, std::unique_ptr<reactor_service> added);
  void end_turn_of_services() noexcept;
  void end_services() noexcept;

  activity activity_;
  std::mutex mutex_;
  job_queue posted_;                // guarded by mutex_
  timer* posted_timers_ = nullptr;  // guarded by mutex_
  bool ending_ = false;             // guarded by mutex_
  std::atomic<bool> asleep_ = false;
  job_queue taken_;  // the jobs of this turn
  timer_heap timers_;
  operation_queue done_;
  std::size_t in_flight_ = 0;
  std::vector<std::pair<const void*, std::unique_ptr<reactor_service>>> services_;
  std::list<polled> polls_;  // polls of services, including services that have ended
  std::function<void()> busy_;
  unsigned turns_ = 0;
  clock::time_point measured_at_;            // time of the last measurement of the load
  std::chrono::nanoseconds measured_cpu_{};  // CPU time of the thread at that time
  std::thread thread_;
};

// The reactor of this thread; null on other threads.
reactor* current_reactor() noexcept;

// The backend with which a runtime waits for files, sockets and timers.
enum class reactor_kind : std::uint8_t {
  automatic,  // io_uring if the kernel allows it, otherwise the fallback
  io_uring,
  fallback,  // epoll, and helper threads for blocking calls
};

// Creates a reactor. Throws error with the kernel's reason if `kind` is io_uring and the kernel
// refuses it.
std::unique_ptr<reactor> make_reactor(reactor_kind kind);

}  // namespace lade::detail
