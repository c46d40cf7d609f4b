// The thread that waits for the operating system: what its backends have in common.

#pragma once

#include <lade/detail/executor.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace lade::detail {

using clock = std::chrono::steady_clock;

// A system call to make, owned by whoever submits it, until `completed` is called on the reactor
// thread. It must stay where it is until then, also when it is cancelled: the kernel writes to it.
struct io_operation {
  enum class kind : std::uint8_t { open, read, close, poll };

  kind what = kind::read;
  int fd = -1;                 // open: the directory; read, close, poll: the file
  const char* path = nullptr;  // open
  int flags = 0;               // open: O_ flags; poll: the POLL events to wait for
  void* data = nullptr;        // read
  std::size_t bytes = 0;       // read
  std::uint64_t offset = 0;    // read
  std::int64_t result = 0;     // what the system call returned, or -errno
  void (*completed)(io_operation&) noexcept = nullptr;
};

// A deadline to be told of on the reactor thread. Owned by whoever starts it; it must stay where
// it is until it has fired or has been removed.
struct timer {
  clock::time_point deadline;
  void (*fired)(timer&) noexcept = nullptr;
  std::size_t place = 0;  // in the reactor's heap; 0 while not started
};

// Runs jobs, fires timers, and completes operations, all on one thread of its own. It is never
// blocked. A backend says how to submit operations and how to wait.
class reactor : public executor {
 public:
  virtual ~reactor() = default;

  // "io_uring" or "fallback", with what a person may want to know of it.
  virtual std::string describe() const = 0;

  void post(job work) final;

  // The members below are for the reactor thread only.

  // Starts the operation; its completion comes in a later turn of the loop, never in this call.
  virtual void submit(io_operation& operation) = 0;

  // Asks for an early end of a submitted operation. It completes all the same, with -ECANCELED or
  // with its result. Never dropped: if the kernel cannot take the request now it is kept.
  virtual void cancel(io_operation& operation) = 0;

  void start(timer& deadline);
  void remove(timer& deadline);  // does nothing when it has fired

  // Starts the thread; the backend's constructor has run. `stop` makes it return when no posted
  // job is left, and joins it; no operation or timer may be outstanding.
  void start_thread();
  void stop_thread();

 protected:
  // Submits what has been queued and waits until an operation completes, wake() is called or the
  // time has come, whichever is first; then completes what is complete. A `deadline` of min()
  // means: do not wait.
  virtual void turn(clock::time_point deadline) = 0;

  // Makes a waiting or the next turn return. Any thread.
  virtual void wake() = 0;

  // Called at the start of the reactor thread, before the first turn.
  virtual void enter_thread() {}

 private:
  void loop();
  void run_posted();
  void fire_timers();
  void sift(std::size_t place);

  std::mutex mutex_;
  std::vector<job> posted_;  // guarded by mutex_
  bool ending_ = false;      // guarded by mutex_
  std::atomic<bool> asleep_ = false;
  std::vector<job> running_;             // the posted jobs of this turn
  std::vector<timer*> timers_{nullptr};  // a binary heap from place 1 on
  std::thread thread_;
};

enum class reactor_kind : std::uint8_t { automatic, io_uring, fallback };

// Makes the reactor that was asked for: `automatic` is io_uring where the kernel allows it, else
// the fallback. Throws error with the kernel's reason if io_uring is demanded and refused.
std::unique_ptr<reactor> make_reactor(reactor_kind kind);

}  // namespace lade::detail
