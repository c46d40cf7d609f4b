#include <lade/detail/in_place_calls.hpp>

namespace lade::detail {

in_place_calls::in_place_calls(run_state& run, stage_counters& stage)
    : run_(run),
      stage_(stage),
      trace_(run.options().trace),
      track_(trace_ ? trace_->add_track(stage.name()) : 0) {}

// At random, so that no rhythm in the items meets one in the samples.
std::uint32_t in_place_calls::some() noexcept {
  draw_ = draw_ * 1664525 + 1013904223;
  return draw_ >> 25;
}

void in_place_calls::note(std::string item, const lineage& origin) {
  constexpr std::chrono::microseconds costs_little_to_measure{10};
  auto now = clock::now();
  auto taken = now - begun_;
  bump(stage_.busy, (skipped_ + 1) * taken.count());
  stage_.latency.add(taken, skipped_ + 1);
  skipped_ = trace_ || taken >= costs_little_to_measure ? 0 : some();
  to_skip_ = skipped_;
  if (!trace_) return;
  trace_->add_span(track_, item.empty() ? stage_.name() : item, begun_, now, origin, arrows_);
}

}  // namespace lade::detail
