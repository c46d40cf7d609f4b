// What becomes of items whose function throws.

#pragma once

#include <lade/error.hpp>
#include <lade/lineage.hpp>

#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace lade {

// What a stage does with an item whose function throws, when it is not to be called again.
enum class on_error : std::uint8_t {
  fail,  // the run ends, and the failure is rethrown to the consumer
  skip,  // the item is dropped
};

// How often a function that throws is called for the same item, which it gets as it was.
//
//   lade::map(fetch, {.retry = {.attempts = 5, .pause = 200ms}})
//
// Pauses grow by `growth` each time. A random part of each, up to `jitter` of it, is left out, so
// that those who failed together do not come back together. While an item waits, its place in the
// stage's concurrency is taken, but no thread.
struct retry {
  // Calls in all, up to 1,048,576; 0: as the run's `retry` says, 1 if that does not.
  unsigned attempts = 0;

  std::chrono::nanoseconds pause = std::chrono::milliseconds(100);  // 0 or more; at most a day
  double growth = 2;                                                // 0 to 1,000,000
  double jitter = 0.5;                                              // 0 to 1

  // Which failures are worth another call; all of them if not given. Called with what was thrown.
  std::function<bool(const std::exception_ptr&)> when = {};
};

// How many items may fail under a policy that lets the run go on. One more, and the run ends with
// that failure. Substituted items count, attempts that are followed by another do not. Without a
// count and a rate, any number may fail.
//
// Which budget judges a failure:
// - A stage whose options give a count or a rate is judged by this budget alone. The run's budget
//   does not apply to the stage, and does not count its failures: so a stage's budget may be looser
//   than the run's or stricter. `{.rate = 1}` lets any number of the stage's items fail.
// - All other stages are judged together by the budget of run_options.
//
// The rate is one of the items begun. For a stage, these are the items that it has taken. For the
// run, they are the items that all sources have given, or that a single stage has taken, if these
// are more: the parts of a flat_map are items too, and so is what a cache gives again.
struct error_budget {
  std::optional<std::uint64_t> count = {};  // 0: no item may fail
  std::optional<double> rate = {};          // 0 to 1, of the items begun ...
  std::uint64_t probation = 0;              // ... once so many have been

  bool is_given() const noexcept { return count || rate; }
};

// An item that failed.
struct failure_record {
  std::string stage;
  std::string item;  // its key, or "item" and its positions
  std::string what;
  unsigned attempts;  // calls that failed
  lineage positions;  // source positions of the item, and of items dropped just before it
  std::uint64_t epoch = 0;
};

// One line of JSON.
std::string to_json(const failure_record& failure);

// A failure of a run: what() tells the stage, the item and the cause, and the same of what failed
// beside it. The item is named once: by the cause, where that does it.
class stage_error : public error {
 public:
  stage_error(std::exception_ptr cause, std::error_code code, std::string stage, std::string item,
              lineage positions, std::string_view why)
      : error(code, names(why, item) ? stage : stage + " (" + item + ")", why),
        cause_(std::move(cause)),
        stage_(std::make_shared<const std::string>(std::move(stage))),
        item_(std::make_shared<const std::string>(std::move(item))),
        why_(std::make_shared<const std::string>(why)),
        positions_(std::make_shared<const lineage>(std::move(positions))) {}

  // The same failure, and others that happened before the run had ended.
  stage_error(const stage_error& first, std::vector<stage_error> others);

  const std::string& stage() const noexcept { return *stage_; }
  const std::string& item() const noexcept { return *item_; }  // its key, as far as it has one
  const lineage& positions() const noexcept { return *positions_; }  // as of a failure_record
  const std::exception_ptr& cause() const noexcept { return cause_; }
  const std::string& why() const noexcept { return *why_; }  // the cause's text

  // What else has failed while the run ended, in the order of time.
  std::span<const stage_error> others() const noexcept;

 private:
  // As errors of lade do, in "<doing to the item>: <why>".
  static bool names(std::string_view why, const std::string& item) {
    return item.empty() || why.find(" " + item + ": ") != std::string_view::npos;
  }

  std::exception_ptr cause_;
  std::shared_ptr<const std::string> stage_;
  std::shared_ptr<const std::string> item_;
  std::shared_ptr<const std::string> why_;
  std::shared_ptr<const lineage> positions_;
  std::shared_ptr<const std::vector<stage_error>> others_;
};

inline std::span<const stage_error> stage_error::others() const noexcept {
  return others_ ? std::span(*others_) : std::span<const stage_error>();
}

namespace detail {

// Whether `how` knows no reason against another call. What `when` throws is one.
bool is_worth_retrying(const retry& how, const std::exception_ptr& failure) noexcept;

// The pause before the call that follows the attempt, the first being 1. `draw` is from [0, 1).
std::chrono::nanoseconds pause_after(const retry& how, unsigned attempt, double draw) noexcept;

// The failure options of one stage.
struct failure_policy {
  std::optional<on_error> finally = {};  // the run's if not given
  lade::retry retry = {};
  error_budget budget = {};
  bool substitutes = false;  // the stage has another item to go on with
};

// How long one call of a stage's function may take, and all calls for one item; 0: no limit.
struct time_limits {
  std::chrono::nanoseconds call = {};
  std::chrono::nanoseconds item = {};

  bool any() const noexcept { return call.count() > 0 || item.count() > 0; }

  // What is left for a call that begins `since_first` after the first call for the item.
  std::chrono::nanoseconds left(std::chrono::nanoseconds since_first) const noexcept;
};

// Throw error(invalid_argument) that names the stage, or the run, and the option that cannot work.
void require_retry(std::string_view stage, const retry& how);
void require_budget(std::string_view stage, const error_budget& budget);
void require_limits(std::string_view stage, std::chrono::nanoseconds timeout,
                    std::chrono::nanoseconds deadline);

// Whether so many failures among so many items are too many.
bool exceeds(const error_budget& budget, std::uint64_t failed, std::uint64_t begun) noexcept;

}  // namespace detail
}  // namespace lade
