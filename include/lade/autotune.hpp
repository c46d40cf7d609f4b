// autotune: stages that find out by themselves how many items to work on at a time.

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lade {

// For the concurrency of map, filter, flat_map, batch_into, pad and pack: all that a run may use.
//
//   lade::map(fetch, {.concurrency = lade::automatic})
//
// A map of tasks begins with 16 at a time, and is adjusted while the run lives by what the run's
// counters tell. While it limits the run, that number is raised or lowered and stays so if the
// stage then gives more, up to `tune_options::most` and to what the memory budget lets be begun. So
// is its buffer where slow items hold up others. A stage that is opened again, in a repeat or by
// the next of several epochs, goes on with what has been found for it.
//
// What computes is left as it is: all such stages of a run together have as many calls at a time as
// `tune_options::cpus` says, which leaves the rest of the CPUs to the trainer; on a pool of its
// own, a stage has so many for itself.
inline constexpr unsigned automatic = ~0u;

struct tune_options {
  // Items that a stage of tasks works on at a time: 1 to 1,048,576.
  unsigned most = 256;

  // For plain functions, up to 65,536; 0: the pool's threads, less one of four or more.
  unsigned cpus = 0;
};

// What a stage works with at present.
struct stage_setting {
  std::string stage;
  unsigned concurrency = 0;
  std::optional<unsigned> buffer = {};  // if its options have one

  friend bool operator==(const stage_setting&, const stage_setting&) = default;
};

// As lines of code: "fetch: {.concurrency = 48, .buffer = 48}".
std::string to_code(std::span<const stage_setting> settings);

namespace detail {

// Throw error(invalid_argument) that names the stage, or the run, and the option that cannot work.
void require_concurrency(std::string_view stage, unsigned concurrency, unsigned least = 0);
void require_tuning(std::string_view run, const tune_options& options);

// Calls at a time of plain functions.
unsigned cpus_to_use(const tune_options& options, unsigned threads) noexcept;

// The same where a stage's options say how many: 0 are all threads.
unsigned calls_at_a_time(unsigned concurrency, const tune_options& options,
                         unsigned threads) noexcept;

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

    friend bool operator==(const setting&, const setting&) = default;
  };

  // Works on at most so many items at a time, and holds at most so many.
  tuner(setting begin, unsigned most, unsigned most_held) noexcept
      : most_(most), most_held_(most_held), now_(within_bounds(begin)), kept_(now_) {}

  const setting& now() const noexcept { return now_; }

  // What the last setting gave. Returns whether there is a new one.
  bool step(const tuning_sample& sample) noexcept;

  // Goes back to the best setting so far if another is being tried.
  void settle() noexcept;

 private:
  static constexpr unsigned shortest_rest = 20;

  bool limits(const tuning_sample& sample) const noexcept;
  bool slow_items_hold_up(const tuning_sample& sample) const noexcept;
  bool try_step() noexcept;
  bool give_room() noexcept;
  setting within_bounds(const setting& wanted) const noexcept;

  unsigned most_;
  unsigned most_held_;
  setting now_;
  setting kept_;            // the best so far
  double kept_rate_ = 0;    // what it gave when it was last measured
  std::size_t factor_ = 0;  // the next of the steps to try
  bool trying_ = false;
  unsigned resting_ = 0;  // samples
  unsigned next_rest_ = shortest_rest;
};

}  // namespace detail
}  // namespace lade
