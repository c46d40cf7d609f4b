// Pipelines: values that describe a source of items and the stages that process them.

#pragma once

#include <lade/async_generator.hpp>
#include <lade/description.hpp>
#include <lade/detail/common/counted.hpp>
#include <lade/detail/pipeline/index.hpp>
#include <lade/detail/pipeline/node.hpp>
#include <lade/detail/pipeline/run_state.hpp>
#include <lade/task.hpp>

#include <concepts>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace lade {

template <class T>
class run;

namespace detail {

[[noreturn]] void refuse_moved_pipeline();

template <class T>
inline constexpr bool is_coroutine = false;
template <class T>
inline constexpr bool is_coroutine<task<T>> = true;
template <class T>
inline constexpr bool is_coroutine<async_generator<T>> = true;

}  // namespace detail

// A source and the stages behind it. The last stage yields items of type T.
//
// A pipeline has no threads and holds no items. It is a value: it can be copied, and run any number
// of times, also concurrently. It owns copies of its functions, options and lists; copies of a
// pipeline share them.
//
// `pipeline | stage` returns the pipeline with one more stage.
template <class T>
class pipeline {
  static_assert(std::movable<T>,
                "lade: items must be movable and assignable: without const members and references, "
                "or in a std::unique_ptr");
  static_assert(
      !detail::is_coroutine<T>,
      "lade: items must not be tasks or generators, which no stage would start. map takes "
      "a function that returns a task, flat_map one that returns a generator");

 public:
  using value_type = T;

  // Starts a run, one pass over the pipeline; see run.hpp. The runtime must outlive the run.
  run<T> start(runtime& where, const run_options& options = {}) const;

  // The stages, with their options and the number of items that each yields.
  pipeline_description describe() const { return detail::describe(*last()); }

  // The number of items that a run of one epoch yields if no item is dropped after a failure: the
  // steps of a trainer. With a shard, the number for its rank.
  //
  // Returns nothing if only a run can determine the number: behind listings and streams, filters,
  // functions that return optionals, flat_map, unbatch, routes, weighted merges, windows, custom
  // coroutines, a repeat without end, and stages that group items by their contents.
  std::optional<std::uint64_t> size() const { return last()->facts().size(); }

  // The members below are for the library. Programs and modules need none of them: a custom stage
  // applies other stages to the pipeline (see `accepts`), a custom source is an argument of from().

  explicit pipeline(detail::counted_ptr<const detail::node<T>> last) noexcept
      : last_(std::move(last)) {}

  // Opens the stages for one run and returns the generator of the last one.
  async_generator<T> open(const detail::open_context& run) const {
    return async_generator<T>(last()->open_in(run));
  }

  // If this pipeline is a source whose items are reached by index (see from.hpp), returns the
  // source with `step` added to its order: a shuffle, draw, shard, take, skip or repeat, which then
  // only computes indices. Otherwise returns nothing.
  std::optional<pipeline> then(const detail::order_step& step) const {
    auto ordered = last()->then(step);
    if (!ordered) return std::nullopt;
    return pipeline(std::move(ordered));
  }

  // The last stage. Throws error(invalid_argument) if this pipeline has been moved from.
  const detail::counted_ptr<const detail::node<T>>& last() const {
    if (!last_) detail::refuse_moved_pipeline();
    return last_;
  }

 private:
  detail::counted_ptr<const detail::node<T>> last_;
};

// Whether S is a stage that can follow P: a class with a member `attach(pipeline) const`, which
// returns the pipeline behind the stage. attach() must not run the pipeline that it gets: in a path
// of a route or tee, that pipeline begins at the path, without a source.
template <class P, class S>
concept accepts = requires(const P& in, const S& stage) { stage.attach(in); };

template <class P, class S>
  requires accepts<P, S>
auto operator|(const P& in, const S& stage) {
  return stage.attach(in);
}

// For any other stage: a compile error that says why.
template <class T, class S>
  requires(!accepts<pipeline<T>, S>)
pipeline<T> operator|(const pipeline<T>& in, const S&) {
  static_assert(!std::movable<T>,
                "lade: not a stage, or the stage does not take items of this type");
  return in;
}

namespace detail {

// The last nodes of several pipelines.
template <class... In>
std::vector<node_ptr> nodes_of(const pipeline<In>&... inputs) {
  return {node_ptr(inputs.last())...};
}

// A pipeline whose last node has the given `facts`. `open` opens the node: a function that takes an
// open_context and returns the generator.
template <class T, class Open>
pipeline<T> make_pipeline(node_facts facts, Open open) {
  class opened_by final : public node<T> {
   public:
    opened_by(node_facts what, Open function)
        : node<T>(std::move(what)), open_(std::move(function)) {}
    async_generator<T> open(const open_context& run) const override { return open_(run); }

   private:
    Open open_;
  };
  return pipeline<T>(counted_ptr(new opened_by(std::move(facts), std::move(open))));
}

}  // namespace detail

}  // namespace lade
