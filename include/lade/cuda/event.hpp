// Events: points in the work of a stream.

#pragma once

#include <lade/cuda/device.hpp>
#include <lade/task.hpp>

#include <chrono>
#include <coroutine>
#include <memory>
#include <utility>

struct CUevent_st;  // of <cuda_runtime.h>: a cudaEvent_t is a pointer to it

namespace lade::cuda {

class stream;

struct event_options {
  bool timing = false;  // whether times are recorded, for since()
};

// A point in a stream. The GPU passes it when all work before it has finished. Copies refer to the
// same event. An event that was never recorded counts as passed.
//
// Awaiting an event neither blocks a thread nor spins. The driver calls back on a side stream, and
// the coroutine resumes on the threads of its runtime. After a failure of the device, the driver
// calls no callbacks. So while anything is awaited, a timer also queries the events every 10 to 100
// ms.
//
// Thread: any, concurrently.
//
// Not yet run on a GPU: tested only with a fake driver.
class event {
 public:
  class awaiter;

  // Throws error.
  explicit event(device on, const event_options& options = {});

  // Moves the event to the end of the work that is queued on `behind` at the time of the call.
  // Throws error.
  void record(const stream& behind) const;

  // Whether the event has been passed. Throws error if the device has failed.
  bool is_complete() const;

  // Blocks until the event has been passed. Throws error if the device has failed, and
  // error(wrong_thread) on a thread of a runtime: await the event there.
  void synchronize() const;

  // `co_await event` resumes when the event has been passed. Throws error if the device has failed,
  // error(stopped) if the caller is cancelled, and error(no_runtime) outside of a runtime. A stop
  // does not end the work on the GPU: memory that it uses must stay valid.
  awaiter operator co_await() const;

  // The same, but a stop does not end the wait: for memory that the GPU uses until the event.
  awaiter uninterruptible() const;

  // The time between two recorded events that have been passed, both with `timing`. Resolution:
  // about half a microsecond. Throws error.
  std::chrono::duration<float, std::milli> since(const event& earlier) const;

  CUevent_st* handle() const noexcept;
  device on() const noexcept { return on_; }

 private:
  device on_;
  std::shared_ptr<CUevent_st> own_;
};

namespace detail {

task<> wait_for(event awaited, bool interruptible);

}  // namespace detail

class event::awaiter {
 public:
  explicit awaiter(task<> work)
      : work_(std::move(work)), inner_(std::move(work_).operator co_await()) {}
  awaiter(const awaiter&) = delete;

  bool await_ready() const noexcept { return false; }
  template <class Promise>
  bool await_suspend(std::coroutine_handle<Promise> coroutine) {
    return inner_.await_suspend(coroutine);
  }
  void await_resume() { inner_.await_resume(); }

 private:
  task<> work_;
  task<>::awaiter inner_;
};

inline event::awaiter event::operator co_await() const {
  return awaiter(detail::wait_for(*this, true));
}
inline event::awaiter event::uninterruptible() const {
  return awaiter(detail::wait_for(*this, false));
}
inline CUevent_st* event::handle() const noexcept { return own_.get(); }

}  // namespace lade::cuda
