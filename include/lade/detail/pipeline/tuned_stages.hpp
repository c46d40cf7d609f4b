// tuned_stages: the settings of the stages of a run, and the tuning of automatic ones.

#pragma once

#include <lade/autotune.hpp>
#include <lade/detail/observability/stage_counters.hpp>
#include <lade/detail/pipeline/stage_key.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace lade::detail {

// The interface of a stage whose setting may change while it works. slots_at(): how many items the
// stage may hold with a setting. Any thread may call both.
class tunable {
 public:
  virtual std::size_t slots_at(const tuner::setting& now) const noexcept = 0;
  virtual void set(const tuner::setting& now) = 0;

 protected:
  ~tunable() = default;
};

// The stages of a run, or of successive epochs: a stage that is opened again continues with its
// last setting. Any thread; mutex_ guards all members.
//
// Each automatic stage has a tuner, which climbs a hill: look() measures the rate of the stage over
// an interval, and lets the tuner keep or revert its last change and try another.
class tuned_stages {
 public:
  // The time between two looks: long enough to measure the rate of a stage.
  static constexpr auto interval = std::chrono::milliseconds(150);

  // Adds a stage with a fixed setting, so that settings() includes it.
  void list(const stage_key& key, const stage_setting& fixed);

  // Tunes a stage until close(). `begin`: the tuner of a stage that has none yet. `counters`: the
  // counters of the stage in this run, which must live until close().
  void open(tunable& stage, const stage_key& key, stage_counters& counters, const tuner& begin);
  void close(const tunable& stage) noexcept;

  // Begins an epoch: stages start with the best setting so far. The tuning of stages that are still
  // open, which belong to the last epoch, ends.
  void begin_epoch();

  // Lets the tuner of each open stage judge the interval since the last look, and applies its new
  // setting. Does nothing after freeze().
  void look(clock::time_point now);

  // Sets all stages to their best setting so far, and ends the tuning.
  void freeze();

  // The settings of all stages, sources first.
  std::vector<stage_setting> settings() const;

 private:
  // The counters of a stage at a look.
  struct work_done {
    clock::time_point at;
    std::uint64_t out = 0;
    std::chrono::nanoseconds next_starved{};
    std::chrono::nanoseconds busy{};  // includes pauses before retries
    std::chrono::nanoseconds output_wait{};
  };

  struct automatic_stage {
    stage_key key;
    stage_setting now;
    std::optional<tuner> climb = {};     // empty: the setting is fixed
    tunable* stage = nullptr;            // null: not open
    stage_counters* counters = nullptr;  // null: not opened in this epoch
    work_done before = {};               // at the last look
    bool changed = true;  // the setting has changed since the last look: the interval is not judged
  };

  static work_done done_by(const stage_counters& counters, clock::time_point now);
  static tuning_sample sample_between(const work_done& later, const work_done& earlier,
                                      unsigned concurrency);
  static void apply(automatic_stage& of);
  static void settle(automatic_stage& of);
  static void look_at(automatic_stage& of, clock::time_point now);
  automatic_stage& find(const stage_key& key, const stage_setting& otherwise);

  mutable std::mutex mutex_;
  std::vector<automatic_stage> stages_;  // last stage first
  bool frozen_ = false;
};

}  // namespace lade::detail
