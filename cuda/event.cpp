#include "capture_guard.hpp"
#include "check.hpp"
#include "completion_watch.hpp"
#include "on_cpu_pool.hpp"
#include "runtime_api.hpp"

#include <lade/cuda/event.hpp>
#include <lade/cuda/stream.hpp>
#include <lade/error.hpp>
#include <lade/runtime.hpp>
#include <lade/sync_wait.hpp>
#include <lade/this_context.hpp>

namespace lade::cuda {

static CUevent_st* create_event(device on, const event_options& options) {
  current_device current(on);
  CUevent_st* handle = nullptr;
  unsigned flags = options.timing ? cudaEventDefault : cudaEventDisableTiming;
  check(api().event_create(&handle, flags), "make an event");
  return handle;
}

event::event(device on, const event_options& options)
    : on_(on), own_(create_event(on, options), [](CUevent_st* handle) {
        if (handle) (void)api().event_destroy(handle);
      }) {}

void event::record(const stream& behind) const {
  current_device current(behind.on());
  check(api().event_record(own_.get(), behind.handle()), "record an event");
}

bool event::is_complete() const {
  capture_guard beside_captures;
  return is_finished(api().event_query(own_.get()), "ask whether an event has been passed");
}

void event::synchronize() const {
  require_blocking_allowed();
  capture_guard beside_captures;
  check(api().event_synchronize(own_.get()), "wait for an event");
}

std::chrono::duration<float, std::milli> event::since(const event& earlier) const {
  float milliseconds = 0;
  check(api().event_elapsed_time(&milliseconds, earlier.handle(), own_.get()),
        "ask for the time between two events");
  return std::chrono::duration<float, std::milli>(milliseconds);
}

// Checks the event again after each notification. Throws the failure of the device.
static task<> wait_until_complete(event awaited, bool interruptible) {
  auto& current = co_await this_context_reference();
  if (!current.runtime) throw error(errc::no_runtime, "wait for an event of a GPU");
  while (!awaited.is_complete()) {
    auto& watch = current.runtime->service<completion_watch>();
    auto passed = watch.watch(awaited);
    if (interruptible)
      co_await std::move(passed.happened);
    else
      co_await std::move(passed.happened).uninterruptible();
    watch.forget(passed.number);
  }
}

task<> detail::wait_for(event awaited, bool interruptible) {
  return on_cpu_pool(wait_until_complete(std::move(awaited), interruptible));
}

}  // namespace lade::cuda
