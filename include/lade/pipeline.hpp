// Pipelines: values that describe where items come from and what is done with them.

#pragma once

#include <lade/async_generator.hpp>
#include <lade/detail/counted.hpp>
#include <lade/detail/index.hpp>
#include <lade/detail/node.hpp>
#include <lade/detail/run_state.hpp>

#include <concepts>
#include <cstdint>
#include <optional>
#include <utility>

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

  pipeline(detail::counted_ptr<const detail::node<T>> last, std::uint64_t length) noexcept
      : last_(std::move(last)), length_(length) {}

  // Begins a pass over the pipeline; see run.hpp. The runtime must outlive it.
  run<T> start(runtime& where, const run_options& options = {}) const;

  // For stages: the live generator of one run, and how many steps there are up to here.
  async_generator<T> open(const detail::opening& run) const {
    return async_generator<T>(last()->open_in(run));
  }
  std::uint64_t length() const noexcept { return length_; }

  // For stages: the items in another order, if they are reached by index.
  std::optional<pipeline> then(const detail::order_step& step) const {
    auto ordered = last()->then(step);
    if (!ordered) return std::nullopt;
    return pipeline(std::move(ordered), length_);
  }

  // For runs and profiles: the last step. Throws error(invalid_argument) if this has been moved
  // from.
  const detail::counted_ptr<const detail::node<T>>& last() const {
    if (!last_) detail::refuse_moved_pipeline();
    return last_;
  }

 private:
  detail::counted_ptr<const detail::node<T>> last_;
  std::uint64_t length_;
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

// The pipeline of `length` steps whose last one is opened by `open`, a function of an opening.
template <class T, class Open>
pipeline<T> make_pipeline(std::uint64_t length, Open open) {
  class opened_by final : public node<T> {
   public:
    explicit opened_by(Open function) : open_(std::move(function)) {}
    async_generator<T> open(const opening& run) const override { return open_(run); }

   private:
    Open open_;
  };
  return pipeline<T>(counted_ptr(new opened_by(std::move(open))), length);
}

}  // namespace detail

}  // namespace lade
