// What a run does beside its work: it tells of itself.

#pragma once

#include <lade/detail/run_state.hpp>

#include <memory>
#include <stop_token>

namespace lade::detail {

// Runs among the children of a run until the run's end.
class observer {
 public:
  // For the child that begins the run.
  void begin(const std::shared_ptr<run_state>& run);

  // The same, when its stages have been opened.
  void tune(const std::shared_ptr<run_state>& run);

  // The consumer has what it will get. What is left is told before the children have ended.
  void end() noexcept { over_.request_stop(); }

 private:
  std::stop_source over_;
};

}  // namespace lade::detail
