// equal_steps, end_together: all ranks of a training run make the same number of steps.

#pragma once

#include <lade/async_generator.hpp>
#include <lade/detail/common/shared_const.hpp>
#include <lade/detail/observability/stage_counters.hpp>
#include <lade/detail/pipeline/items.hpp>
#include <lade/detail/pipeline/open_context.hpp>
#include <lade/detail/pipeline/run_state.hpp>
#include <lade/error.hpp>
#include <lade/lineage.hpp>
#include <lade/pipeline.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

namespace lade {

// The item of a step, such as a batch, and whether it is a repeat.
template <class T>
class step_of {
 public:
  using value_type = T;

  step_of(T item, bool is_repeat) : item_(std::move(item)), is_repeat_(is_repeat) {}

  T& operator*() noexcept { return item_; }
  const T& operator*() const noexcept { return item_; }
  T* operator->() noexcept { return &item_; }
  const T* operator->() const noexcept { return &item_; }

  // Whether the item is a repeat, which this rank yields only because another rank makes a step.
  bool is_repeat() const noexcept { return is_repeat_; }

  // The key of the item, for errors, and its size in bytes, for statistics.
  std::string key() const { return detail::key_of(item_); }
  std::size_t content_bytes() const {
    return static_cast<std::size_t>(detail::content_bytes(item_));
  }

 private:
  T item_;
  bool is_repeat_;
};

struct equal_steps_options {
  // Steps per epoch, the same on all ranks. Any number is valid. With 0, the stage yields nothing.
  // If the input has more items, the rest is not delivered; if it has fewer, they are repeated.
  // Default: pipeline::size() of the input.
  std::optional<std::uint64_t> steps = {};
};

namespace detail {

// The number of steps per epoch behind `in`. If the options do not have it, throws
// error(invalid_argument) if it is known only in a run, or if other ranks may have another number.
std::uint64_t steps_of_epoch(const node_base& in, const equal_steps_options& options);

node_facts equal_steps_facts(node_ptr in, std::uint64_t steps);

// The remaining steps of one run, and the repeats that earlier runs have delivered.
class step_count {
 public:
  // Throws error(invalid_argument) if the state from which the run resumes has another number of
  // steps. `of_input`: number of items of the input, if known.
  step_count(const open_context& run, std::uint64_t steps, std::optional<std::uint64_t> of_input);

  bool is_reached() const noexcept { return left_ == 0; }
  bool is_whole_input() const noexcept { return left_ == 0 && is_whole_; }
  void take() noexcept { --left_; }

  // Whether to skip the next repeat, because an earlier run has delivered it.
  bool leaves_out_repeat() noexcept { return repeats_before_ > 0 && repeats_before_-- > 0; }

  [[noreturn]] void fail_without_items() const;

 private:
  bool is_whole_;
  std::uint64_t left_;
  std::uint64_t repeats_before_;
};

template <class T>
void count_step(stage_counters& counters, const step_of<T>& step) {
  increment(counters.in);
  if (step.is_repeat()) increment(counters.repeated);
  count_out(counters, step);
}

}  // namespace detail

class equal_steps_stage {
 public:
  explicit equal_steps_stage(const equal_steps_options& options) noexcept : options_(options) {}

  template <class T>
  pipeline<step_of<T>> attach(const pipeline<T>& in) const {
    auto steps = detail::steps_of_epoch(*in.last(), options_);
    return detail::make_pipeline<step_of<T>>(
        detail::equal_steps_facts(in.last(), steps), [in, steps](const detail::open_context& run) {
          auto& counters = run.add_stage();
          detail::step_count left(run, steps, in.size());
          return make<T>(in, in.open(run), run, counters, left, detail::open_input(run.run));
        });
  }

 private:
  template <class T>
  static async_generator<step_of<T>> make(pipeline<T> in, std::optional<async_generator<T>> items,
                                          detail::open_context run,
                                          detail::stage_counters& counters, detail::step_count left,
                                          detail::open_input input);

  // The items of one pass after another over `in`. Ends with a pass that has no items.
  template <class T>
  static async_generator<T> pass_after_pass(pipeline<T> in, detail::open_context run);

  equal_steps_options options_;
};

// The last stage of a rank's pipeline: every run has the same number of steps on all ranks, even if
// items fail and are skipped. A rank with too few items repeats its own items, from the first of
// the epoch on. step_of::is_repeat() marks repeats, stage_statistics::repeated counts them.
//
//   auto steps = files | shuffle({.seed = 7}) | shard(rank) | map(io::read) | batch_into(...) |
//                equal_steps();
//
// The number of steps is the size() of this rank's pipeline. So all ranks run the same pipeline
// with the same list and the same seeds; otherwise set equal_steps_options::steps.
//
// Repeats: a further pass over the pipeline makes the repeats anew. So nothing is kept in memory,
// and an item that fails again is counted again. The run fails if it needs a repeat but the rank
// has no items, or all of them fail.
//
// State: a state has the steps and the repeats that the consumer has taken. A run that resumes
// makes the remaining steps, with any number of ranks whose pipelines have as many steps. A later
// stage that groups, splits, reorders or drops steps makes run::state() throw. So does a later
// stage that skips failures.
//
// Errors: `pipeline | equal_steps()` throws error(invalid_argument) if the number of steps is not
// known before a run, or may differ between ranks (remainder::keep). In these cases, set it in the
// options. A run throws it if a repeat is behind the stage, or if there is another equal_steps.
inline equal_steps_stage equal_steps(const equal_steps_options& options = {}) noexcept {
  return equal_steps_stage(options);
}

// Returns whether any rank has passed true: a logical or of the argument over all ranks. `true`
// says that the calling rank has ended.
using any_rank_ended = std::function<bool(bool)>;

class end_together_stage {
 public:
  // Throws error(invalid_argument) if the function is empty.
  explicit end_together_stage(any_rank_ended any_ended);

  template <class T>
  pipeline<T> attach(const pipeline<T>& in) const {
    return detail::make_pipeline<T>(detail::node_facts::behind(in.last(), "end_together")
                                        .yielding(cardinality::one)
                                        .holding(0)
                                        .ending_early(),
                                    [in, any_ended = any_ended_](const detail::open_context& run) {
                                      if (run.run->profiling())
                                        return in.open(run);  // a profile runs on one rank alone
                                      auto& counters = run.add_stage();
                                      return until_one_ends(in.open(run), any_ended, run, counters);
                                    });
  }

 private:
  template <class T>
  static async_generator<T> until_one_ends(async_generator<T> in,
                                           detail::shared_const<any_rank_ended> any_ended,
                                           detail::open_context run,
                                           detail::stage_counters& counters);

  // Whether the run is over. Throws error(invalid_argument) if this rank has ended and the function
  // returns false.
  static bool is_over(const any_rank_ended& any_ended, bool ended);

  detail::shared_const<any_rank_ended> any_ended_;
};

// The last stage of a rank's pipeline: all ranks end when the first rank has no further item.
//
//   auto steps = batches | lade::end_together([&](bool ended) { return ranks.any(ended); });
//
// Before every item, the stage calls `any_ended(false)`; at the end, `any_ended(true)`. The
// function must return whether any rank has passed true, so it waits for all ranks. Items that
// other ranks had ready for that step are not delivered. A state counts them as undelivered.
//
// - Thread: called on the CPU pool, one call at a time, as far ahead of the consumer as the run
//   works. So it needs a communicator that nothing else uses.
// - Blocking: it may block, and occupies a thread meanwhile. All ranks must take all of their
//   items: a rank that leaves its run earlier blocks the others.
// - Errors: an exception of the function ends the run.
inline end_together_stage end_together(any_rank_ended any_ended) {
  return end_together_stage(std::move(any_ended));
}
template <class F>
  requires(!std::convertible_to<F, any_rank_ended> || !std::copy_constructible<std::decay_t<F>>)
end_together_stage end_together(F&&) {
  static_assert(
      std::convertible_to<F, any_rank_ended> && std::copy_constructible<std::decay_t<F>>,
      "lade::end_together: the function must take a bool, return a bool, and be copyable");
  return end_together_stage(any_rank_ended());
}

template <class T>
async_generator<step_of<T>> equal_steps_stage::make(
    pipeline<T> in, std::optional<async_generator<T>> items, detail::open_context run,
    detail::stage_counters& counters, detail::step_count left, detail::open_input input) {
  try {
    while (!left.is_reached()) {
      auto* item = co_await items->next();
      if (!item) break;
      left.take();
      step_of<T> step(std::move(*item), false);
      detail::count_step(counters, step);
      co_yield step;
    }
    if (left.is_whole_input()) co_await items->next();  // lets caches see the end of the input
    items.reset();
    if (!left.is_reached() && !run.run->profiling()) items.emplace(pass_after_pass(in, run));
    while (items && !left.is_reached()) {
      auto* item = co_await items->next();
      input.end();  // the sources of the further pass are open now
      if (!item) left.fail_without_items();
      if (left.leaves_out_repeat()) continue;
      left.take();
      step_of<T> step(std::move(*item), true);
      detail::count_step(counters, step);
      co_yield step;
    }
    input.end();
  } catch (...) {
    std::rethrow_exception(run.failure(counters, {on_error::fail}, {}, {}));
  }
}

template <class T>
async_generator<T> equal_steps_stage::pass_after_pass(pipeline<T> in, detail::open_context run) {
  auto sources = *run.pass;
  sources.repeats = true;
  run = run.over(std::move(sources));
  for (bool any = true; any;) {
    any = false;
    auto items = in.open(run);
    while (auto* item = co_await items.next().apart()) {
      any = true;
      co_yield *item;
    }
  }
}

template <class T>
async_generator<T> end_together_stage::until_one_ends(
    async_generator<T> in, detail::shared_const<any_rank_ended> any_ended, detail::open_context run,
    detail::stage_counters& counters) {
  try {
    while (true) {
      auto* item = co_await in.next();
      if (item) detail::increment(counters.in);
      if (is_over(*any_ended, !item)) break;
      detail::count_out(counters, *item);
      co_yield *item;
    }
  } catch (...) {
    std::rethrow_exception(run.failure(counters, {on_error::fail}, {}, {}));
  }
}

}  // namespace lade
