// Pipelines: values that describe where items come from and what is done with them.

#pragma once

#include <lade/async_generator.hpp>
#include <lade/description.hpp>
#include <lade/detail/common/counted.hpp>
#include <lade/detail/pipeline/index.hpp>
#include <lade/detail/pipeline/node.hpp>
#include <lade/detail/pipeline/run_state.hpp>

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

}  // namespace detail

// A source and the stages behind it, ending in items of type T. A pipeline has no threads and
// holds no items: it is a value to copy and to run any number of times, also at the same time.
// What it refers to (functions, options, lists) it holds copies of.
//
// `pipeline | stage` is the pipeline with one more stage.
template <class T>
class pipeline {
  static_assert(std::movable<T>,
                "lade: items must be movable and assignable: without const members and references, "
                "or in a std::unique_ptr");

 public:
  using value_type = T;

  explicit pipeline(detail::counted_ptr<const detail::node<T>> last) noexcept
      : last_(std::move(last)) {}

  // Begins a pass over the pipeline; see run.hpp. The runtime must outlive it.
  run<T> start(runtime& where, const run_options& options = {}) const;

  // The stages, with their options and their numbers of items.
  pipeline_description describe() const { return detail::describe(*last()); }

  // How many items a run of one epoch yields, if no item fails and is dropped: the steps of a
  // trainer, for the rank of a shard too. Nothing if only a run can tell: behind listings and
  // streams, filters, functions of optionals, flat_map, unbatch, routes, weighted merges, windows,
  // coroutines of the user, and stages that make groups by what is in the items.
  std::optional<std::uint64_t> size() const { return last()->facts().size(); }

  // For stages: the live generator of one run.
  async_generator<T> open(const detail::open_context& run) const {
    return async_generator<T>(last()->open_in(run));
  }

  // For stages: the items in another order, if they are reached by index.
  std::optional<pipeline> then(const detail::order_step& step) const {
    auto ordered = last()->then(step);
    if (!ordered) return std::nullopt;
    return pipeline(std::move(ordered));
  }

  // For runs and profiles: the last step. Throws error(invalid_argument) if this has been moved
  // from.
  const detail::counted_ptr<const detail::node<T>>& last() const {
    if (!last_) detail::refuse_moved_pipeline();
    return last_;
  }

 private:
  detail::counted_ptr<const detail::node<T>> last_;
};

// Whether S is a stage that can follow P.
template <class P, class S>
concept accepts = requires(const P& in, const S& stage) { stage.attach(in); };

template <class P, class S>
  requires accepts<P, S>
auto operator|(const P& in, const S& stage) {
  return stage.attach(in);
}

namespace detail {

// The nodes that several pipelines end in.
template <class... In>
std::vector<node_ptr> nodes_of(const pipeline<In>&... inputs) {
  return {node_ptr(inputs.last())...};
}

// The pipeline whose last node says `facts` of itself and is opened by `open`, a function of an
// open_context.
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
