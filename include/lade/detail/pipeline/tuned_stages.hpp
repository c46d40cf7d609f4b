// What a run finds out for its stages whose concurrency is automatic.

#pragma once

#include <lade/autotune.hpp>
#include <lade/detail/pipeline/stage_key.hpp>
#include <lade/stats.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace lade::detail {

// A stage whose setting may change while it works. Any thread.
class tunable {
 public:
  virtual void set(const tuner::setting& now) = 0;

 protected:
  ~tunable() = default;
};

// The stages of a run, or of epochs that follow each other: a stage that is opened again goes on
// with what has been found for it. Any thread.
class tuned_stages {
 public:
  // How often to look: long enough for what a stage does in between to tell something.
  static constexpr auto interval = std::chrono::milliseconds(150);

  // A stage that works with what it is given.
  void list(const stage_key& key, const stage_setting& fixed);

  // Stages are shown by the names that `name_of` gives from now on; no name leaves one as it is.
  void rename(const std::function<std::string(const stage_key&)>& name_of);

  // A stage that works, until it is closed, with what its tuner says; with `begin` if it has none
  // yet. The counters are those of the run, and live until then.
  void open(tunable& stage, const stage_key& key, stage_counters& counters, const tuner& begin);
  void close(const tunable& stage) noexcept;

  // The next epoch begins with the best that has been found. What is still open belongs to the last
  // one and is tuned no more.
  void begin_epoch();

  // Judges what each stage has done since the last time, and changes its setting, unless all are to
  // stay as they are.
  void look(clock::time_point now);

  // All stages keep the best that has been found.
  void freeze();

  // From the source on.
  std::vector<stage_setting> settings() const;

 private:
  // What a stage had done at a look.
  struct work_done {
    clock::time_point at;
    std::uint64_t out = 0;
    std::chrono::nanoseconds starving{};
    std::chrono::nanoseconds busy{};  // and pauses before other attempts
    std::chrono::nanoseconds output_wait{};
  };

  struct automatic_stage {
    stage_key key;
    stage_setting now;
    std::optional<tuner> climb = {};     // empty for one that stays as it is
    tunable* stage = nullptr;            // null while it is not open
    stage_counters* counters = nullptr;  // null before it is opened in an epoch
    work_done before = {};
    bool changed = true;  // since the last look: what it did then is not to be judged by
  };

  static work_done done_by(const stage_counters& counters, clock::time_point now);
  static tuning_sample sample_between(const work_done& later, const work_done& earlier,
                                      unsigned concurrency);
  static void apply(automatic_stage& of);
  static void settle(automatic_stage& of);
  static void look_at(automatic_stage& of, clock::time_point now);
  automatic_stage& find(const stage_key& key, const stage_setting& otherwise);

  mutable std::mutex mutex_;
  std::vector<automatic_stage> stages_;  // from the sink on
  bool frozen_ = false;
};

}  // namespace lade::detail
