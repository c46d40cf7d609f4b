// inline_calls: statistics, trace and stall reports of a stage that calls its function inline.

#pragma once

#include <lade/detail/observability/overview.hpp>
#include <lade/detail/observability/stage_counters.hpp>
#include <lade/detail/observability/stage_track.hpp>
#include <lade/detail/pipeline/run_state.hpp>
#include <lade/lineage.hpp>
#include <lade/trace.hpp>

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

namespace lade::detail {

struct open_context;

// The call in progress, for stall reports. Any thread may request a report.
class watched_call final : private overviewed {
 public:
  watched_call(std::shared_ptr<run_state> run, const stage_counters& stage);
  watched_call(const watched_call&) = delete;
  ~watched_call() override;

  void begin(std::string item, const lineage& origin);
  void end();

 private:
  std::string overview(clock::time_point at) const override;

  std::shared_ptr<run_state> run_;
  const stage_counters& stage_;
  mutable std::mutex mutex_;
  std::optional<item_overview> item_;  // while the function is called
};

// Measures the durations of calls, one call at a time. Measures every call if calls are rare or the
// run has a trace, to which it adds a span for each. Otherwise it measures one call in about 64, at
// random. It counts each skipped call with the measured duration; the sum is at most the elapsed
// time.
class inline_calls {
 public:
  inline_calls(const open_context& run, stage_counters& stage);

  // Call both with the same item. `awaited`: whether the call has suspended.
  template <class Name>
  void begin(const Name& item, const lineage& origin) {
    if (watched_) watched_->begin(item.text(), origin);
    if (to_skip_ > 0) return;
    begun_ = clock::now();
    if (trace_) run_.arrows().step(origin, track_.number(), begun_);
    busy_.begin(begun_);
  }
  template <class Name>
  void end(const Name& item, const lineage& origin, bool awaited = false) {
    if (watched_) watched_->end();
    if (to_skip_ > 0) {
      --to_skip_;
      return;
    }
    auto now = clock::now();
    bool named = trace_ || stage_.slowest.take(now - begun_);
    note(named ? item.text() : std::string(), origin, now, awaited);
  }

 private:
  std::uint32_t some() noexcept;
  void note(std::string item, const lineage& origin, clock::time_point now, bool awaited);

  run_state& run_;
  stage_counters& stage_;
  std::unique_ptr<watched_call> watched_;  // null unless stalls are reported
  lade::trace* trace_;
  stage_track track_;
  call_time::caller busy_;
  std::uint32_t to_skip_ = 0;  // calls left to skip before the next measured one
  std::uint32_t skipped_ = 0;  // calls between the last measured one and the next
  std::uint32_t draw_ = 1;
  clock::time_point begun_;
  clock::time_point ended_ = clock::now();  // end of the last measured call
};

}  // namespace lade::detail
