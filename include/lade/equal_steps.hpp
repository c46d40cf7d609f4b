// equal_steps, end_together: all ranks of a training make the same number of steps.

#pragma once

#include <lade/async_generator.hpp>
#include <lade/detail/common/shared_const.hpp>
#include <lade/detail/pipeline/items.hpp>
#include <lade/detail/pipeline/open_context.hpp>
#include <lade/detail/pipeline/run_state.hpp>
#include <lade/error.hpp>
#include <lade/lineage.hpp>
#include <lade/pipeline.hpp>
#include <lade/stats.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <string>
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

  // Whether the item is there only because another rank makes a step.
  bool is_repeat() const noexcept { return is_repeat_; }

  // What errors call it, and what statistics count of it.
  std::string key() const { return detail::key_of(item_); }
  std::size_t content_bytes() const {
    return static_cast<std::size_t>(detail::content_bytes(item_));
  }

 private:
  T item_;
  bool is_repeat_;
};

struct equal_steps_options {
  // Steps of an epoch, the same on all ranks. Further items are left out. pipeline::size() of the
  // input if not given.
  std::optional<std::uint64_t> steps = {};
};

namespace detail {

// The number of steps of an epoch behind `in`. Throws error(invalid_argument) if the options do not
// say it, and only a run can tell, or if other ranks may have another number.
std::uint64_t steps_of_epoch(const node_base& in, const equal_steps_options& options);

node_facts equal_steps_facts(node_ptr in, std::uint64_t steps);

// The steps of one run: how many are left, and how many repeats earlier runs have delivered.
class step_count {
 public:
  // Throws error(invalid_argument) if the state that the run resumes from has another number of
  // steps. `of_input`: how many the input has, if that is known.
  step_count(const open_context& run, std::uint64_t steps, std::optional<std::uint64_t> of_input);

  bool is_reached() const noexcept { return left_ == 0; }
  bool is_whole_input() const noexcept { return left_ == 0 && is_whole_; }
  void take() noexcept { --left_; }

  // Whether the next repeat is one that an earlier run has delivered.
  bool leaves_out_repeat() noexcept { return repeats_before_ > 0 && repeats_before_-- > 0; }

  [[noreturn]] void fail_without_items() const;

 private:
  bool is_whole_;
  std::uint64_t left_;
  std::uint64_t repeats_before_;
};

template <class T>
void count_step(stage_counters& counters, const step_of<T>& step) {
  bump(counters.in);
  if (step.is_repeat()) bump(counters.repeated);
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
          auto& counters = run.add_stage("equal_steps");
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

  // The items of further passes, one after the other, until one has none.
  template <class T>
  static async_generator<T> pass_after_pass(pipeline<T> in, detail::open_context run);

  equal_steps_options options_;
};

// The last stage of a rank's pipeline: every run has the same number of steps on all ranks,
// whichever items fail and are skipped. A rank that comes short repeats items of its own, from the
// first of the epoch on: step_of::is_repeat() tells them, stage_statistics::repeated counts them.
//
//   auto steps = files | shuffle({.seed = 7}) | shard(rank) | map(io::read) | batch_into(...) |
//                equal_steps();
//
// Repeats are made anew, by a further pass over the pipeline. So an item that fails again is
// counted again, and nothing is kept in memory. A state has the number of steps and of repeats that
// the consumer has taken: a run that resumes makes the steps that are left, with any number of
// ranks whose pipelines have as many steps. The run fails if there is nothing to repeat because a
// rank has no items, or all of them fail.
//
// pipeline | equal_steps() throws error(invalid_argument) if the number of steps is not known
// before a run, and if it may be another one on other ranks (remainder::keep): then the options
// must say it.
inline equal_steps_stage equal_steps(const equal_steps_options& options = {}) noexcept {
  return equal_steps_stage(options);
}

// Tells all ranks whether any of them has come to its end: a logical or of what each rank says of
// itself.
using any_rank_ended = std::function<bool(bool)>;

class end_together_stage {
 public:
  // Throws error(invalid_argument) without a function.
  explicit end_together_stage(any_rank_ended any_ended);

  template <class T>
  pipeline<T> attach(const pipeline<T>& in) const {
    return detail::make_pipeline<T>(
        detail::node_facts::behind(in.last(), "end_together").yielding(cardinality::one),
        [in, any_ended = any_ended_](const detail::open_context& run) {
          if (run.run->profiling()) return in.open(run);  // of one rank alone
          auto& counters = run.add_stage("end_together");
          return until_one_ends(in.open(run), any_ended, run, counters);
        });
  }

 private:
  template <class T>
  static async_generator<T> until_one_ends(async_generator<T> in,
                                           detail::shared_const<any_rank_ended> any_ended,
                                           detail::open_context run,
                                           detail::stage_counters& counters);

  // Whether the run is over. Throws error(invalid_argument) if the ranks disagree.
  static bool is_over(const any_rank_ended& any_ended, bool ended);

  detail::shared_const<any_rank_ended> any_ended_;
};

// The last stage of a rank's pipeline: all ranks end when the first has no further item. Calls
// `any_ended(ended)` before every item, with false, and at the end, with true; it must return
// whether any rank has passed true, so it waits for all ranks. Items that other ranks had ready for
// that step are not delivered, and belong to the rest of a state.
//
//   auto steps = batches | lade::end_together([&](bool ended) { return ranks.any(ended); });
//
// Called on the CPU pool, as far ahead of the consumer as the run works, one call at a time. So it
// needs a communicator that nothing else uses. It may block, and keeps a thread meanwhile. All
// ranks must take all of their items: one that leaves its run earlier keeps the others waiting.
// What the function throws ends the run.
inline end_together_stage end_together(any_rank_ended any_ended) {
  return end_together_stage(std::move(any_ended));
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
    if (left.is_whole_input()) co_await items->next();  // caches wait for the end
    items.reset();
    if (!left.is_reached() && !run.run->profiling()) items.emplace(pass_after_pass(in, run));
    input.end();
    while (items && !left.is_reached()) {
      auto* item = co_await items->next();
      if (!item) left.fail_without_items();
      if (left.leaves_out_repeat()) continue;
      left.take();
      step_of<T> step(std::move(*item), true);
      detail::count_step(counters, step);
      co_yield step;
    }
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
      if (item) detail::bump(counters.in);
      if (is_over(*any_ended, !item)) break;
      detail::count_out(counters, *item);
      co_yield *item;
    }
  } catch (...) {
    std::rethrow_exception(run.failure(counters, {on_error::fail}, {}, {}));
  }
}

}  // namespace lade
