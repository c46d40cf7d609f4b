#include "completion_watch.hpp"

#include "capture_guard.hpp"
#include "check.hpp"
#include "runtime_api.hpp"

#include <lade/cuda/stream.hpp>
#include <lade/error.hpp>
#include <lade/sleep.hpp>

#include <algorithm>
#include <chrono>
#include <memory>
#include <new>
#include <optional>

namespace lade::cuda {

static context context_of(runtime& runtime) {
  return {.runtime = &runtime, .home = &runtime.pool()};
}

completion_watch::completion_watch(runtime& runtime)
    : registry_(std::make_shared<registry>()), polling_(context_of(runtime)) {}

// No coroutine waits any more. CUDA destroys a stream after the work queued on it has finished.
completion_watch::~completion_watch() {
  std::map<std::uint64_t, entry> unanswered;
  std::map<int, std::vector<CUstream_st*>> idle;
  {
    std::lock_guard lock(registry_->mutex);
    unanswered.swap(registry_->entries);
    idle.swap(registry_->idle);
  }
  for (auto& [number, each] : unanswered) (void)api().stream_destroy(each.side);
  for (auto& [on, streams] : idle)
    for (auto* each : streams) (void)api().stream_destroy(each);
}

completion_watch::watched completion_watch::watch(const event& awaited) {
  current_device current(awaited.on());
  capture_guard beside_captures;
  auto destroy = [](CUstream_st* stream) { (void)api().stream_destroy(stream); };
  std::unique_ptr<CUstream_st, decltype(destroy)> side(acquire_side_stream(awaited.on()));
  std::unique_lock lock(registry_->mutex);
  auto number = registry_->next++;
  auto& added = registry_->entries.try_emplace(number, awaited, side.get()).first->second;
  auto* side_stream = side.release();
  auto happened = added.happened.get_future();
  bool must_start = !std::exchange(registry_->polling, true);
  lock.unlock();
  try {
    if (must_start) start_polling();
    queue_callback(awaited, side_stream, number);
  } catch (...) {
    registry_->answer(number, true);
    forget(number);
    throw;
  }
  return {std::move(happened), number};
}

void completion_watch::start_polling() {
  try {
    polling_.start(poll(registry_));
  } catch (...) {
    std::lock_guard lock(registry_->mutex);
    registry_->polling = false;
    throw;
  }
}

void completion_watch::queue_callback(const event& awaited, CUstream_st* side,
                                      std::uint64_t number) {
  check(api().stream_wait_event(side, awaited.handle(), 0), "wait for an event of a GPU");
  auto argument = std::make_unique<callback>(callback{registry_, number});
  check(api().launch_host_func(side, call_back, argument.get()), "wait for an event of a GPU");
  (void)argument.release();  // owned by the callback, which is not called if the device fails
}

void completion_watch::call_back(void* argument) noexcept {
  std::unique_ptr<callback> called(static_cast<callback*>(argument));
  called->to->answer(called->number, true);
}

void completion_watch::registry::answer(std::uint64_t number, bool by_callback) {
  std::optional<promise<>> happened;
  {
    std::lock_guard lock(mutex);
    auto found = entries.find(number);
    if (found == entries.end()) return;
    auto& answered = found->second;
    answered.called = answered.called || by_callback;
    if (!std::exchange(answered.answered, true)) happened.emplace(std::move(answered.happened));
  }
  if (happened) happened->set_value();
}

// Moves entries whose side streams are free to `erased`, and keeps the streams.
void completion_watch::erase_called(registry& all,
                                    std::map<std::uint64_t, entry>& erased) noexcept {
  for (auto at = all.entries.begin(); at != all.entries.end();) {
    auto next = std::next(at);
    if (at->second.called) {
      all.idle.find(at->second.awaited.on().index())->second.push_back(at->second.side);
      erased.insert(all.entries.extract(at));
    }
    at = next;
  }
}

void completion_watch::forget(std::uint64_t number) {
  std::map<std::uint64_t, entry> erased;
  std::lock_guard lock(registry_->mutex);
  auto found = registry_->entries.find(number);
  if (found == registry_->entries.end() || !found->second.called) return;
  registry_->idle.find(found->second.awaited.on().index())->second.push_back(found->second.side);
  erased.insert(registry_->entries.extract(found));
}

// Reserves capacity for every stream in the idle list, so that returning one never allocates.
CUstream_st* completion_watch::acquire_side_stream(device on) {
  {
    std::lock_guard lock(registry_->mutex);
    auto& idle = registry_->idle[on.index()];
    if (!idle.empty()) {
      auto* side = idle.back();
      idle.pop_back();
      return side;
    }
    idle.reserve(++registry_->side_streams);
  }
  CUstream_st* side = nullptr;
  check(api().stream_create(&side, cudaStreamNonBlocking, 0), "wait for an event of a GPU");
  return side;
}

task<> completion_watch::poll(std::shared_ptr<registry> all) {
  using std::chrono::milliseconds;
  for (milliseconds pause(10);; pause = std::min(2 * pause, milliseconds(100))) {
    co_await sleep(pause);
    try {
      if (!poll_once(*all)) co_return;
    } catch (const std::bad_alloc&) {}  // polls again later
  }
}

// Returns whether entries remain; if not, polling ends.
bool completion_watch::poll_once(registry& all) {
  std::map<std::uint64_t, entry> erased;
  std::vector<std::pair<std::uint64_t, event>> unanswered;
  {
    std::lock_guard lock(all.mutex);
    erase_called(all, erased);
    for (auto& [number, each] : all.entries)
      if (!each.answered) unanswered.emplace_back(number, each.awaited);
    if (all.entries.empty()) return all.polling = false;
  }
  for (auto& [number, awaited] : unanswered) {
    bool has_failed = false;
    try {
      if (!awaited.is_complete()) continue;
    } catch (const error&) {
      has_failed = true;  // the driver calls no callbacks any more
    }
    all.answer(number, has_failed);
  }
  return true;
}

}  // namespace lade::cuda
