#include <lade/detail/pipeline/open_context.hpp>
#include <lade/detail/stages/inline_calls.hpp>

#include <algorithm>
#include <utility>

namespace lade::detail {

watched_call::watched_call(std::shared_ptr<run_state> run, const stage_counters& stage)
    : run_(std::move(run)), stage_(stage) {
  run_->stages().watch(*this);
}

watched_call::~watched_call() { run_->stages().unwatch(*this); }

void watched_call::begin(std::string item, const lineage& origin) {
  std::lock_guard lock(mutex_);
  item_ = item_overview{.name = std::move(item),
                        .origin = origin,
                        .what = item_overview::doing::works,
                        .since = clock::now()};
}

void watched_call::end() {
  std::lock_guard lock(mutex_);
  item_.reset();
}

std::string watched_call::overview(clock::time_point at) const {
  std::lock_guard lock(mutex_);
  return to_string(stage_.name(), item_, at);
}

inline_calls::inline_calls(const open_context& run, stage_counters& stage)
    : run_(*run.run),
      stage_(stage),
      watched_(run_.watches_stalls() ? std::make_unique<watched_call>(run.run, stage) : nullptr),
      trace_(run_.options().trace),
      track_(trace_, stage),
      busy_(stage.busy) {}

// Samples at random, since a fixed interval could coincide with a period in the items.
std::uint32_t inline_calls::some() noexcept {
  draw_ = draw_ * 1664525 + 1013904223;
  return draw_ >> 25;
}

// Assumes that each skipped call took as long as this one, but all together not longer than the
// time since the last measured call.
void inline_calls::note(std::string item, const lineage& origin, clock::time_point now,
                        bool awaited) {
  constexpr std::chrono::microseconds costs_little_to_measure{10};
  auto taken = now - begun_;
  auto before = std::min<clock::duration>(skipped_ * taken, begun_ - ended_);
  busy_.end(now);
  busy_.add(before);
  if (awaited) increment(stage_.awaited, (taken + before).count());
  stage_.latency.add(taken);
  if (stage_.slowest.take(taken)) stage_.slowest.add({item, origin, taken});
  if (skipped_ > 0) stage_.latency.add(before / skipped_, skipped_);
  bool seldom = now - ended_ >= (skipped_ + 1) * costs_little_to_measure;
  ended_ = now;
  skipped_ = trace_ || seldom ? 0 : some();
  to_skip_ = skipped_;
  if (!trace_) return;
  trace_->add_span(track_.number(), item.empty() ? stage_.name() : item, begun_, now, origin);
}

}  // namespace lade::detail
