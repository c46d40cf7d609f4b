// failure: retries, error budgets, and records of items whose function throws.

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

// The policy of a stage for an item whose function has thrown and is not called again. A failure
// with condition::device_lost ends the run in any case.
enum class on_error : std::uint8_t {
  fail,  // the run ends, and the failure is rethrown to the consumer
  skip,  // the item is dropped
};

// How often a stage calls its function again for an item for which the function threw. Every call
// gets the item unchanged.
//
//   lade::map(fetch, {.retry = {.attempts = 5, .pause = 200ms}})
//
// Each pause is `growth` times as long as the one before, at most a day. A random part of it, up to
// the share `jitter`, is subtracted, so that items that failed together are not retried together.
// During the pause an item keeps its slot of the stage's concurrency, but no thread.
struct retry {
  // Calls in all, up to 1,048,576. 0: as in the run's `retry`; 1 if that has none either.
  unsigned attempts = 0;

  std::chrono::nanoseconds pause = std::chrono::milliseconds(100);  // first pause: 0 to a day
  double growth = 2;    // 0 to 1,000,000; with 0, only the first pause is more than 0
  double jitter = 0.5;  // 0 to 1

  // Called with the exception; returns whether another call is worth it. Default: always. A failure
  // with condition::device_lost is never retried.
  std::function<bool(const std::exception_ptr&)> when = {};
};

// How many items may fail under a policy that lets the run continue. One failure more ends the run
// with that failure. Items that are substituted count. Attempts that are followed by another do
// not. With a count and a rate, the first of the two that is exceeded ends the run. With neither,
// any number of items may fail.
//
// Which budget applies to a failure:
// - If the stage's options have a count or a rate, that budget alone applies. The run's budget does
//   not apply to the stage and does not count its failures, so a stage's budget may be looser or
//   stricter than the run's. `{.rate = 1}` lets any number of the stage's items fail.
// - All other stages together share the budget of run_options.
//
// The rate is the share of failures among the started items. For a stage: the items that it has
// taken. For the run: the items that all sources have yielded, or the items that a single stage has
// taken if they are more. So parts of a flat_map count, and so do items that a cache yields again.
struct error_budget {
  std::optional<std::uint64_t> count = {};  // 0: no item may fail
  std::optional<double> rate = {};          // share of the started items: 0 to 1
  std::uint64_t probation = 0;              // started items from which on the rate applies

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

// A failure of a run. what() names the stage, the item and the cause. It does the same for up to
// three other failures that happened before the run had ended. The item is named once: if the cause
// names it, only there.
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

  // Copies `first`, and adds other failures that happened before the run had ended.
  stage_error(const stage_error& first, std::vector<stage_error> others);

  const std::string& stage() const noexcept { return *stage_; }
  const std::string& item() const noexcept { return *item_; }  // key of the item, if it has one
  const lineage& positions() const noexcept { return *positions_; }  // as in failure_record
  const std::exception_ptr& cause() const noexcept { return cause_; }
  const std::string& why() const noexcept { return *why_; }  // text of the cause

  // Other failures that happened while the run ended, in order of time.
  std::span<const stage_error> others() const noexcept;

 private:
  // Whether `why` names the item, as errors of lade do: "<doing to the item>: <why>".
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

// For modules that retry calls themselves. pause_after(): the pause after a failed call. `attempt`:
// number of that call, from 1. `draw`: a random number in [0, 1), for the jitter. require_retry():
// throws error(invalid_argument), which begins with `doing` and names the option, if an option is
// invalid.
std::chrono::nanoseconds pause_after(const retry& how, unsigned attempt, double draw) noexcept;
void require_retry(std::string_view doing, const retry& how);

namespace detail {

// Whether another call is allowed. Not if the device is lost, nor if `when` refuses or throws.
bool is_worth_retrying(const retry& how, const std::exception_ptr& failure) noexcept;

// The failure options of one stage.
struct failure_policy {
  std::optional<on_error> finally = {};  // default: the run's
  lade::retry retry = {};
  error_budget budget = {};
  bool substitutes = false;  // whether the stage replaces the item by another
};

// Limits of time for one call of a stage's function, and for all calls for one item. 0: none.
struct time_limits {
  std::chrono::nanoseconds call = {};
  std::chrono::nanoseconds item = {};

  bool any() const noexcept { return call.count() > 0 || item.count() > 0; }

  // The time left for a call that begins `since_first` after the first call for the item.
  std::chrono::nanoseconds left(std::chrono::nanoseconds since_first) const noexcept;
};

// Throw error(invalid_argument) naming the stage or the run, and the option, if an option is
// invalid. `policy`: that of a stage; its budget has no effect with on_error::fail.
void require_budget(std::string_view stage, const error_budget& budget,
                    std::optional<on_error> policy = {});
void require_limits(std::string_view stage, std::chrono::nanoseconds timeout,
                    std::chrono::nanoseconds deadline);

// Whether `failed` failures among `started` items exceed the budget.
bool exceeds(const error_budget& budget, std::uint64_t failed, std::uint64_t started) noexcept;

}  // namespace detail
}  // namespace lade
