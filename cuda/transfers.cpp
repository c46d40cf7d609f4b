#include "transfers.hpp"

#include "capture_guard.hpp"
#include "check.hpp"
#include "completion_watch.hpp"
#include "runtime_api.hpp"

#include <lade/cuda/error.hpp>
#include <lade/error.hpp>

#include <limits>
#include <utility>

namespace lade::cuda {

// The limit of pinned memory: the budget, plus space for gaps between blocks.
static std::size_t pinned_limit(std::size_t budget) {
  constexpr auto most = std::numeric_limits<std::size_t>::max();
  constexpr std::size_t region = std::size_t{32} << 20;
  return budget > most / 2 - region ? most : budget + budget / 4 + region;
}

transfers::transfers(runtime& runtime)
    : limit_bytes_(pinned_limit(runtime.memory().stats().limit_bytes)),
      held_(context{.runtime = &runtime, .home = &runtime.pool()}) {}

// Services end in reverse order. held_ awaits events, so completion_watch must start first.
transfers& transfers::of(runtime& runtime) {
  (void)runtime.service<completion_watch>();
  return runtime.service<transfers>();
}

transfer_statistics transfers_of(runtime& where) { return transfers::of(where).stats(); }

pinned_memory& transfers::pinned(device near) {
  std::lock_guard lock(mutex_);
  auto& found = links_[near.index()].pinned;
  if (!found)
    found = std::make_shared<pinned_memory>(
        pinned_memory_options{.limit_bytes = limit_bytes_, .near = near});
  return *found;
}

device_resource& transfers::memory(device on) {
  std::lock_guard lock(mutex_);
  auto& found = links_[on.index()].memory;
  if (!found) found = std::make_shared<device_memory>(on);
  return *found;
}

const stream& transfers::to_host(device from) {
  std::lock_guard lock(mutex_);
  auto& found = links_[from.index()].to_host;
  if (!found) found.emplace(from);
  return *found;
}

// If memory for a coroutine is exhausted, this thread waits.
void transfers::keep(const event& until, std::vector<buffer> memory,
                     std::function<void()> then) noexcept {
  if (memory.empty() && !then) return;
  try {
    held_.start(wait_and_call(until, memory, then));
  } catch (...) {
    capture_guard beside_captures;
    (void)api().event_synchronize(until.handle());
    if (then) then();
  }
}

// If the wait fails without a lost device, the GPU may still use the memory, so it is never freed.
task<> transfers::wait_and_call(event until, std::vector<buffer> memory,
                                std::function<void()> then) {
  bool is_free = co_await has_passed(until);
  if (!is_free) (void)new auto(std::move(memory));
  if (then) then();
}

// Returns whether the GPU has finished the work before the event, or has failed. If the event
// cannot be awaited, this thread waits.
task<bool> transfers::has_passed(event until) {
  try {
    co_await until.uninterruptible();
    co_return true;
  } catch (...) {}
  capture_guard beside_captures;
  auto result = api().event_synchronize(until.handle());
  co_return result == cudaSuccess || std::error_code(result, category()) == condition::device_lost;
}

void transfers::count(std::size_t bytes, std::size_t staged_bytes) noexcept {
  batches_.fetch_add(1, std::memory_order_relaxed);
  bytes_.fetch_add(bytes, std::memory_order_relaxed);
  staged_bytes_.fetch_add(staged_bytes, std::memory_order_relaxed);
}

transfer_statistics transfers::stats() const {
  transfer_statistics sum{.batches = batches_, .bytes = bytes_, .staged_bytes = staged_bytes_};
  std::lock_guard lock(mutex_);
  for (auto& [index, each] : links_) {
    if (!each.pinned) continue;
    auto of_device = each.pinned->stats();
    sum.pinned_bytes += of_device.pinned_bytes;
    sum.fallback_bytes += of_device.fallback_bytes;
  }
  return sum;
}

std::string transfers::unreported_refusal(device near) {
  std::lock_guard lock(mutex_);
  auto& use = links_[near.index()];
  if (use.is_refusal_reported || !use.pinned) return {};
  auto refusal = use.pinned->refusal();
  use.is_refusal_reported = !refusal.empty();
  return refusal;
}

queued_copies::queued_copies(transfers& in, const stream& on, std::vector<buffer> memory)
    : in_(in), on_(on), current_(on.on()), passed_(on.on()), memory_(std::move(memory)) {}

queued_copies::~queued_copies() {
  if (memory_.empty()) return;
  try {
    (void)finish();
  } catch (...) {
    capture_guard beside_captures;
    (void)api().stream_synchronize(on_.handle());
  }
}

void queued_copies::copy_to_device(std::byte* to, const std::byte* from, std::size_t bytes) const {
  if (bytes == 0) return;
  check(api().memcpy_async(to, from, bytes, cudaMemcpyHostToDevice, on_.handle()),
        "copy a batch to a GPU");
}

void queued_copies::copy_to_host(std::byte* to, const std::byte* from, std::size_t bytes) const {
  if (bytes == 0) return;
  check(api().memcpy_async(to, from, bytes, cudaMemcpyDeviceToHost, on_.handle()),
        "copy a batch from a GPU");
}

event queued_copies::finish(std::function<void()> then) {
  passed_.record(on_);
  in_.keep(passed_, std::exchange(memory_, {}), std::move(then));
  return passed_;
}

event queued_copies::finish_unkept() {
  passed_.record(on_);
  memory_.clear();
  return passed_;
}

}  // namespace lade::cuda
