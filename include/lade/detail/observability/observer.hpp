// What a run does beside its work, until the consumer has what it will get.

#pragma once

#include <lade/detail/observability/watchdog.hpp>
#include <lade/detail/pipeline/run_state.hpp>
#include <lade/detail/runtime/activity.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace lade::detail {

// It tells of itself. What is left is told before its children have ended. For the child that
// begins the run.
void begin_telling(const std::shared_ptr<run_state>& run);

// Has the watchdog look at a run as long as it lives: tells when the consumer waits for too long,
// and which stages block a reactor, each once. What the listener throws ends the run.
class run_watch final : private watched {
 public:
  explicit run_watch(std::shared_ptr<run_state> run);
  run_watch(const run_watch&) = delete;
  ~run_watch();

 private:
  std::chrono::nanoseconds interval() const noexcept override;
  void look(std::span<const activity::step> blocking) noexcept override;
  void look_for_stall();
  void name_blocking(const activity::step& step);
  void tell(const std::string& text) const;

  const std::shared_ptr<run_state> run_;
  watchdog& dog_;
  std::uint64_t delivered_ = 0;
  clock::duration waited_before_{};   // when the last item was delivered
  bool reported_ = false;             // of the wait for this item
  std::vector<std::uint64_t> named_;  // numbers of stages
};

// It looks at its stages and tunes them. For every stage that may be tuned.
void begin_tuning(const std::shared_ptr<run_state>& run);

}  // namespace lade::detail
