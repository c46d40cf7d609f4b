#include <lade/detail/runtime/activity.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <ctime>
#include <memory>
#include <utility>

#include <unistd.h>

namespace lade::detail {

// Accurate to a few milliseconds, at a quarter of the cost of CLOCK_MONOTONIC.
static std::int64_t coarse_nanoseconds() noexcept {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

void activity::enter_thread() noexcept {
  this_activity = this;
  thread_ = gettid();
}

void activity::begin() noexcept {
  name("", 0);
  began_.store(coarse_nanoseconds(), std::memory_order_release);
}

void activity::end() noexcept {
  auto began = began_.exchange(0, std::memory_order_relaxed);
  auto now = coarse_nanoseconds();
  if (began == 0 || std::chrono::nanoseconds(now - began) <= allowed) return;
  auto ended = step_at(began, now);
  std::lock_guard lock(mutex_);
  if (ended.lasted - newly_not_scheduled() > allowed) keep(ended);
}

activity::interruption::interruption(activity& of) noexcept
    : of_(of), inside_(of.began_ != 0), doing_(of.doing_), stage_(of.stage_) {
  of_.end();
}

activity::interruption::~interruption() {
  if (!inside_) return;
  of_.name(doing_, stage_);
  of_.began_.store(coarse_nanoseconds(), std::memory_order_release);
}

void activity::wake_later(const futex_word* word) noexcept {
  const auto* before = to_wake_.exchange(word);
  if (before != nullptr && before != word) futex_wake_one(before);
}

void activity::wake_now() noexcept {
  if (to_wake_.load(std::memory_order_relaxed) == nullptr) return;
  if (const auto* word = to_wake_.exchange(nullptr)) futex_wake_one(word);
}

activity::step activity::step_at(std::int64_t began, std::int64_t now) const noexcept {
  return {stage_.load(std::memory_order_relaxed), doing_.load(std::memory_order_relaxed),
          std::chrono::nanoseconds(now - began)};
}

// Replaces a shorter step of the same stage. Without capacity for another stage, drops the step.
void activity::keep(const step& ended) noexcept {
  auto end = ended_.begin() + static_cast<std::ptrdiff_t>(count_ended_);
  auto same = std::find_if(ended_.begin(), end,
                           [&](const step& each) { return each.stage == ended.stage; });
  if (same == ended_.end()) return;
  if (same == end) ++count_ended_;
  if (same == end || same->lasted < ended.lasted) *same = ended;
}

std::vector<activity::step> activity::take_long() {
  std::vector<step> found;
  found.reserve(most_ended + 1);
  std::lock_guard lock(mutex_);
  for (; count_ended_ > 0; --count_ended_) found.push_back(ended_[count_ended_ - 1]);
  auto not_counted = newly_not_scheduled();
  if (auto began = began_.load(std::memory_order_acquire)) {
    auto current = step_at(began, coarse_nanoseconds());
    if (current.lasted - not_counted > allowed && began_.load() == began) found.push_back(current);
  }
  return found;
}

// The increase of not_scheduled() since the last call.
std::chrono::nanoseconds activity::newly_not_scheduled() noexcept {
  auto before = std::exchange(not_scheduled_, not_scheduled());
  return std::chrono::nanoseconds(not_scheduled_ - before);
}

// The total time for which the thread was runnable without a CPU; 0 if the kernel does not report
// it.
std::int64_t activity::not_scheduled() const noexcept {
  char path[64];
  std::snprintf(path, sizeof path, "/proc/self/task/%d/schedstat", thread_.load());
  auto close = [](std::FILE* file) { std::fclose(file); };
  std::unique_ptr<std::FILE, decltype(close)> file(std::fopen(path, "re"), close);
  long long ran = 0;
  long long waited = 0;
  if (!file || std::fscanf(file.get(), "%lld %lld", &ran, &waited) != 2) return 0;
  return waited;
}

}  // namespace lade::detail
