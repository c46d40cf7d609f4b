// Pipelines: values that describe where items come from and what is done with them.

#pragma once

#include <lade/async_generator.hpp>
#include <lade/detail/index.hpp>
#include <lade/detail/long_chain.hpp>
#include <lade/detail/profiler.hpp>
#include <lade/detail/run_state.hpp>

#include <atomic>
#include <concepts>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace lade {

template <class T>
class run;

namespace detail {

// What all steps of pipelines know.
class node_base : public chain_link {
 public:
  // For runs that begin with this step. Warns, once, of a second one for an epoch that nobody has
  // chosen, if a stage of it depends on the epoch.
  void warn_of_same_epoch(run_state& run) const;

 private:
  mutable std::atomic<unsigned> runs_without_epoch_ = 0;
};

// One step of a pipeline, from the source to here. Immutable, shared by all pipelines made from it.
template <class T>
class node : public node_base {
 public:
  // Makes the live generator of one run. Called on the run's pool.
  virtual async_generator<T> open(const opening& run) const = 0;

  // Of a source that is reached by index: the same in another order. Null of all others.
  virtual std::shared_ptr<const node> then(const order_step&) const { return nullptr; }
};

// Tells a run's hooks of a stage. One that is left early is told when it is destroyed.
class stage_visit {
 public:
  stage_visit(std::shared_ptr<run_state> run, std::string stage)
      : run_(std::move(run)), stage_(std::move(stage)) {
    run_->tell_hooks([this](run_hooks& hooks) { hooks.enter_stage(stage_); });
  }
  stage_visit(const stage_visit&) = delete;
  ~stage_visit() {
    run_->tell_hooks([this](run_hooks& hooks) { hooks.leave_stage(stage_, failure_); });
  }

  void failed(std::exception_ptr failure) noexcept { failure_ = std::move(failure); }

 private:
  std::shared_ptr<run_state> run_;
  std::string stage_;
  std::exception_ptr failure_;
};

template <class T>
async_generator<T> visit_stage(async_generator<T> items, std::shared_ptr<run_state> run,
                               std::string name) {
  stage_visit visit(std::move(run), std::move(name));
  try {
    while (auto* item = co_await items.next()) co_yield *item;
  } catch (...) {
    visit.failed(std::current_exception());
    throw;
  }
}

template <class T>
async_generator<T> with_hooks(async_generator<T> items, const opening& run) {
  if (!run.run->options().hooks) return items;
  auto name = run.run->name_of({run.stage, run.inside_of});
  return name.empty() ? std::move(items) : visit_stage(std::move(items), run.run, std::move(name));
}

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

  // `last` is deleted by chain_link::deleter if it holds other pipelines.
  pipeline(std::shared_ptr<const detail::node<T>> last, std::uint64_t length) noexcept
      : last_(std::move(last)), length_(length) {}

  // Begins a pass over the pipeline; see run.hpp. The runtime must outlive it.
  run<T> start(runtime& where, const run_options& options = {}) const;

  // For stages: the live generator of one run, and how many steps there are up to here.
  async_generator<T> open(const detail::opening& run) const {
    return run.profiling ? detail::open_profiled(*this, run) : open_stage(run);
  }
  std::uint64_t length() const noexcept { return length_; }

  // For stages: the items in another order, if they are reached by index.
  std::optional<pipeline> then(const detail::order_step& step) const {
    auto ordered = last_->then(step);
    if (!ordered) return std::nullopt;
    return pipeline(std::move(ordered), length_);
  }

  // For runs: see node_base.
  void warn_of_same_epoch(detail::run_state& run) const { last_->warn_of_same_epoch(run); }

  // For profiles: the same, whatever else there is, and what tells this stage from others.
  async_generator<T> open_stage(const detail::opening& run) const {
    auto here = run.of(last_.get());
    auto open = [&] { return detail::with_hooks(last_->open(here), here); };
    if (++here.recursion < detail::longest_chain) return open();
    here.recursion = 0;
    return detail::break_chain<T>(open);
  }
  detail::stage_key key(const detail::opening& run) const noexcept {
    return {last_.get(), run.inside_of};
  }

 private:
  std::shared_ptr<const detail::node<T>> last_;
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
    async_generator<T> open(const opening& run) const override { return open_(run.of(this)); }

   private:
    Open open_;
  };
  std::shared_ptr<const node<T>> last(new opened_by(std::move(open)), chain_link::deleter());
  return pipeline<T>(std::move(last), length);
}

}  // namespace detail

}  // namespace lade
