// autotune: stages whose concurrency the run chooses.

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lade {

// `automatic` is a value for the concurrency of map, filter, flat_map, batch_into, pad and pack,
// for the count of prefetch, and for run_options::ready. The run chooses the number.
//
//   lade::map(fetch, {.concurrency = lade::automatic})
//
// Tasks and generators: a map of tasks, and a flat_map of generators, begin with 16 items in
// flight. The run adjusts that number by its statistics. While the stage is the bottleneck, the run
// raises or lowers the number, and keeps a new value if the stage then yields more. The limits are
// `tune_options::most` and the memory budget. The buffer of a map grows where slow items block
// others. A stage that is opened again, in a repeat or by the next of several epochs, continues
// with the values found so far.
//
// Plain functions: the number is fixed. All automatic stages of a run together have
// `tune_options::cpus` calls in flight, which leaves the other CPUs to the trainer. A stage with a
// dedicated pool has as many for itself. A flat_map whose function returns a range is such a stage.
//
// Queues: prefetch and the output queue begin with 2 items. The run doubles the number while the
// next stage is starved though the queue was full.
//
// It is the largest unsigned number, so a computed concurrency of -1 means `automatic` and is not
// refused.
inline constexpr unsigned automatic = ~0u;

struct tune_options {
  // Limit of the items in flight in a stage of tasks or generators, and of the items in an
  // automatic queue: 1 to 1,048,576.
  unsigned most = 256;

  // Calls in flight of plain functions, up to 65,536. 0: the threads of the pool, minus one if
  // there are four or more.
  unsigned cpus = 0;
};

// The current setting of a stage.
struct stage_setting {
  std::string stage;
  unsigned concurrency = 0;             // 0: a queue
  std::optional<unsigned> buffer = {};  // empty if the stage has no such option

  friend bool operator==(const stage_setting&, const stage_setting&) = default;
};

// One line of code per stage: "fetch: {.concurrency = 48, .buffer = 48}"; for a queue its capacity:
// "prefetch: 8".
std::string to_code(std::span<const stage_setting> settings);

namespace detail {

// Throw error(invalid_argument) naming the stage or the run, and the option, if an option is
// invalid.
void require_concurrency(std::string_view stage, unsigned concurrency, unsigned least = 0);
void require_tuning(std::string_view run, const tune_options& options);

// The number of concurrent calls of plain functions.
unsigned cpus_to_use(const tune_options& options, unsigned threads) noexcept;

// The same for a stage with the option `concurrency`; 0 means all threads.
unsigned calls_at_a_time(unsigned concurrency, const tune_options& options,
                         unsigned threads) noexcept;

class tuner;

// Of a queue of up to `most` items.
tuner queue_tuner(unsigned most) noexcept;

// Measurements of a stage in one interval.
struct tuning_sample {
  double rate = 0;     // items yielded per second
  double starved = 0;  // share of time that the next stage was starved
  double busy = 0;     // share of its concurrency in use
  double blocked = 0;  // share of time that its feeder was blocked
};

// Finds the concurrency at which one stage has the highest rate, by hill climbing. It tries a step
// and keeps it if the rate has grown with it. Otherwise it returns to the best setting, and tries a
// smaller step and then the other direction. If no step helps it rests, since the input of the run
// may change. Each rest is longer than the last, up to a limit; a step that helps makes them short
// again.
class tuner {
 public:
  struct setting {
    unsigned concurrency;
    std::optional<unsigned> buffer;  // empty: the buffer of the stage is fixed

    friend bool operator==(const setting&, const setting&) = default;
  };

  // Allows at most `most` items in flight, and `most_held` with the buffer. A setting without
  // concurrency belongs to a queue: only its buffer changes.
  tuner(setting begin, unsigned most, unsigned most_held) noexcept
      : most_(most), most_held_(most_held), now_(within_bounds(begin)), kept_(now_) {}

  const setting& now() const noexcept { return now_; }
  unsigned most() const noexcept { return most_; }

  // Judges the current setting by its sample. Returns whether the setting has changed.
  bool step(const tuning_sample& sample) noexcept;

  // Returns to the best setting so far, if another one is being tried.
  void settle() noexcept;

 private:
  static constexpr unsigned shortest_rest = 20;

  bool limits(const tuning_sample& sample) const noexcept;
  bool slow_items_hold_up(const tuning_sample& sample) const noexcept;
  bool try_step() noexcept;
  bool add_slots() noexcept;
  std::optional<unsigned> buffer_for(unsigned concurrency) const noexcept;
  setting within_bounds(const setting& wanted) const noexcept;

  unsigned most_;
  unsigned most_held_;
  setting now_;
  setting kept_;            // best setting so far
  double kept_rate_ = 0;    // its rate when it was last measured
  std::size_t factor_ = 0;  // index of the next step to try
  bool trying_ = false;
  unsigned resting_ = 0;                // samples of the current rest still to ignore
  unsigned next_rest_ = shortest_rest;  // samples
};

}  // namespace detail
}  // namespace lade
