// Coroutines and callbacks that observe a run: periodic reports, stall detection and tuning.

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

// Starts the periodic reports, if the options of the run have a listener. The last report is made
// before the children of the run have ended. Must be called by the child that starts the run.
void begin_reports(const std::shared_ptr<run_state>& run);

// Registers a run with the watchdog while the object lives. Reports when the consumer waits longer
// than options().stall.after, once for each item, and when a stage blocks a reactor, once for each
// stage. An exception of the listener ends the run.
//
// The watchdog's thread alone accesses the members that change. The destructor blocks until look()
// has returned, then reports the blocking steps that look() has not seen.
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
  void notify(const std::string& text) const;

  const std::shared_ptr<run_state> run_;
  watchdog& dog_;
  std::uint64_t delivered_ = 0;
  clock::duration waited_before_{};   // waiting time until the last item was delivered
  bool reported_ = false;             // the wait for the current item has been reported
  std::vector<std::uint64_t> named_;  // numbers of the stages that have been reported
};

// Starts the periodic tuning of the run's stages. Called by every stage with automatic settings;
// only the first call in a run has an effect.
void begin_tuning(const std::shared_ptr<run_state>& run);

}  // namespace lade::detail
