#include <lade/detail/activity.hpp>

#include <cstdio>
#include <ctime>
#include <memory>
#include <utility>

#include <unistd.h>

namespace lade::detail {

// To within a few milliseconds, at a quarter of the cost of the exact clock.
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
  name("", nullptr);
  began_.store(coarse_nanoseconds(), std::memory_order_release);
}

void activity::end() noexcept {
  auto began = began_.exchange(0, std::memory_order_relaxed);
  auto now = coarse_nanoseconds();
  if (began == 0 || std::chrono::nanoseconds(now - began) <= allowed) return;
  auto ended = step_at(began, now);
  std::lock_guard lock(mutex_);
  if (!ended_ || ended_->lasted < ended.lasted) ended_ = ended;
}

activity::step activity::step_at(std::int64_t began, std::int64_t now) const noexcept {
  return {stage_.load(std::memory_order_relaxed), doing_.load(std::memory_order_relaxed),
          std::chrono::nanoseconds(now - began)};
}

std::optional<activity::step> activity::take() noexcept {
  if (auto began = began_.load(std::memory_order_acquire)) {
    auto current = step_at(began, coarse_nanoseconds());
    if (current.lasted > allowed && began_.load() == began) return current;
  }
  std::lock_guard lock(mutex_);
  return std::exchange(ended_, std::nullopt);
}

std::optional<activity::step> activity::take_long() noexcept {
  auto before = std::exchange(not_scheduled_, not_scheduled());
  auto found = take();
  bool blocks =
      found && found->lasted - std::chrono::nanoseconds(not_scheduled_ - before) > allowed;
  return blocks ? found : std::nullopt;
}

// How long the thread has waited for a CPU; 0 where the kernel does not tell.
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
