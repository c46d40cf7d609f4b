// What is recorded of the calls of a stage that works in place.

#pragma once

#include <lade/detail/run_state.hpp>
#include <lade/lineage.hpp>
#include <lade/stats.hpp>
#include <lade/trace.hpp>

#include <cstdint>
#include <string>

namespace lade::detail {

// How long the calls take: all that take long, and one in about 64 short ones, which counts for
// those before it. Of every call a span, if there is a trace. One call at a time.
class in_place_calls {
 public:
  in_place_calls(run_state& run, stage_counters& stage);

  void begin(const lineage& origin) {
    if (trace_) arrows_ = run_.begin_arrows(origin);
    if (to_skip_ == 0) begun_ = clock::now();
  }

  // With what the function was called for.
  template <class Name>
  void end(const Name& item, const lineage& origin) {
    if (to_skip_ > 0)
      --to_skip_;
    else
      note(trace_ ? item.text() : std::string(), origin);
  }

 private:
  std::uint32_t some() noexcept;
  void note(std::string item, const lineage& origin);

  run_state& run_;
  stage_counters& stage_;
  lade::trace* trace_;
  lade::trace::track track_;
  lineage arrows_;             // that begin with this call
  std::uint32_t to_skip_ = 0;  // calls, before the next that is measured
  std::uint32_t skipped_ = 0;
  std::uint32_t draw_ = 1;
  clock::time_point begun_;
};

}  // namespace lade::detail
