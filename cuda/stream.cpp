#include "capture_guard.hpp"
#include "check.hpp"
#include "runtime_api.hpp"

#include <lade/cuda/stream.hpp>
#include <lade/sync_wait.hpp>

namespace lade::cuda {

static void destroy_stream(void* handle) noexcept {
  (void)api().stream_destroy(static_cast<cudaStream_t>(handle));
}

stream::stream(device on, const stream_options& options) : handle_(nullptr), on_(on) {
  current_device current(on);
  check(api().stream_create(&handle_, cudaStreamNonBlocking, options.priority), "make a stream");
  own_ = std::shared_ptr<void>(handle_, destroy_stream);
}

stream stream::legacy_default(device on) { return {cudaStreamLegacy, on}; }
stream stream::per_thread_default(device on) { return {cudaStreamPerThread, on}; }

void stream::wait(const event& earlier) const {
  current_device current(on_);
  check(api().stream_wait_event(handle_, earlier.handle(), 0), "let a stream wait for an event");
}

event stream::record() const {
  event last(on_);
  last.record(*this);
  return last;
}

bool stream::is_idle() const {
  current_device current(on_);
  capture_guard beside_captures;
  return is_finished(api().stream_query(handle_), "ask a stream whether it is idle");
}

void stream::synchronize() const {
  require_blocking_allowed();
  current_device current(on_);
  capture_guard beside_captures;
  check(api().stream_synchronize(handle_), "wait for a stream");
}

}  // namespace lade::cuda
