// stage_track: the track of a stage's spans in a trace.

#pragma once

#include <lade/detail/observability/stage_counters.hpp>
#include <lade/trace.hpp>

#include <exception>
#include <optional>
#include <utility>

namespace lade::detail {

// Adds the track to the trace at its first use, at the latest in the destructor. So the tracks are
// in the order in which the stages begin to work. Does nothing without a trace.
class stage_track {
 public:
  stage_track(trace* to, const stage_counters& stage) noexcept : trace_(to), stage_(stage) {}
  stage_track(stage_track&& other) noexcept
      : trace_(std::exchange(other.trace_, nullptr)), stage_(other.stage_), track_(other.track_) {}
  stage_track& operator=(stage_track&&) = delete;
  ~stage_track() {
    try {
      number();
    } catch (const std::exception&) {}
  }

  trace::track number() {
    if (trace_ && !track_) track_ = trace_->add_track(stage_.name());
    return track_.value_or(0);
  }

 private:
  trace* trace_;
  const stage_counters& stage_;
  std::optional<trace::track> track_;
};

}  // namespace lade::detail
