// autotune: stages that find out by themselves how many items to work on at a time.

#pragma once

#include <lade/stats.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace lade {

// For the concurrency of a map: adjusted while the run lives, by what the run's counters tell.
//
//   lade::map(fetch, {.concurrency = lade::automatic})
//
// A stage of tasks begins with 16 at a time. While it limits the run, that number is raised or
// lowered and stays so if the stage then gives more, up to `tune_options::most` and to what the
// memory budget lets be begun. So is its buffer where slow items hold up others. Plain functions of
// all such stages of a run have as many calls at a time as `tune_options::cpus` says, which leaves
// the rest of the CPUs to the trainer; on a pool of its own, a stage has so many for itself.
inline constexpr unsigned automatic = ~0u;

struct tune_options {
  unsigned most = 256;  // items that a stage of tasks works on at a time
  unsigned cpus = 0;    // for plain functions; 0: the pool's threads, less one of four or more
};

// What a stage works with at present.
struct stage_setting {
  std::string stage;
  unsigned concurrency = 0;
  unsigned buffer = 0;

  friend bool operator==(const stage_setting&, const stage_setting&) = default;
};

// As lines of code: "fetch: {.concurrency = 48, .buffer = 48}".
std::string to_code(std::span<const stage_setting> settings);

namespace detail {

// Calls at a time of plain functions.
unsigned cpus_to_use(const tune_options& options, unsigned threads) noexcept;

// What a stage did in an interval, as far as it tells what to change.
struct tuning_sample {
  double rate = 0;     // items it gave in a second
  double hungry = 0;   // share of the time that the next stage waited for it
  double busy = 0;     // of its concurrency
  double no_room = 0;  // share of the time that its feeder waited for room
};

// Climbs to the concurrency at which one stage gives the most: tries a step, keeps it if the rate
// has grown with it, and otherwise goes back and tries a smaller step, then the other direction.
// When no step helps it rests, and tries again later, each time after a longer rest, since what a
// run reads from may change.
class tuner {
 public:
  struct setting {
    unsigned concurrency;
    unsigned buffer;
  };

  tuner(setting begin, unsigned most) noexcept : now_(begin), kept_(begin), most_(most) {}

  const setting& now() const noexcept { return now_; }

  // What the last setting gave. Returns whether there is a new one.
  bool step(const tuning_sample& sample) noexcept;

 private:
  static constexpr unsigned shortest_rest = 20;

  bool limits(const tuning_sample& sample) const noexcept;
  bool slow_items_hold_up(const tuning_sample& sample) const noexcept;
  bool try_step() noexcept;

  setting now_;
  setting kept_;          // the best so far
  double kept_rate_ = 0;  // what it gave when it was last measured
  unsigned most_;
  std::size_t factor_ = 0;  // the next of the steps to try
  bool trying_ = false;
  unsigned resting_ = 0;  // samples
  unsigned next_rest_ = shortest_rest;
};

// A stage whose setting may change while it works. Any thread.
class tunable {
 public:
  virtual void set(const tuner::setting& now) = 0;

 protected:
  ~tunable() = default;
};

}  // namespace detail
}  // namespace lade
