// The concurrent stage: a drain, workers and a ring of slots between two generators.

#pragma once

#include <lade/async_generator.hpp>
#include <lade/detail/common/counted.hpp>
#include <lade/detail/coroutines/owner.hpp>
#include <lade/detail/coroutines/promise.hpp>
#include <lade/detail/pipeline/items.hpp>
#include <lade/detail/pipeline/run_state.hpp>
#include <lade/detail/stages/calls.hpp>
#include <lade/detail/stages/concurrent_core.hpp>
#include <lade/pipeline.hpp>
#include <lade/sleep.hpp>
#include <lade/task.hpp>
#include <lade/waiting_items.hpp>

#include <array>
#include <concepts>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace lade::detail {

// The name and the copy of an item, for after the call that takes the item.
template <class In>
struct kept_item {
  kept_name<In> name;
  std::optional<In> copy;  // for another attempt
};

// The base of slot_calls_of: the names and copies of the items in a call. `Kept`: an array with one
// kept_item for each of them.
template <class In, class Out, class Kept>
class named_calls : public slot_calls {
 public:
  named_calls(std::vector<slot_values<In, Out>>& slots, Kept kept)
      : slots_(slots), kept_(std::move(kept)) {}

  void keep_name(std::size_t number, std::size_t slot) noexcept override {
    kept_[number].name.keep(*slots_[slot].in);
  }
  std::string name(std::size_t number) const noexcept override { return kept_[number].name.text(); }

  item_view argument(std::size_t slot) const noexcept override { return view_of(*slots_[slot].in); }
  item_view result(std::size_t slot) const noexcept override {
    return view_of_result(slots_[slot].out);
  }

  bool copy(std::size_t number, std::size_t slot) override {
    if constexpr (std::copy_constructible<In>) kept_[number].copy.emplace(*slots_[slot].in);
    return kept_[number].copy.has_value();
  }
  void put_copy_back(std::size_t number, std::size_t slot) override {
    slots_[slot].in.emplace(std::move(*kept_[number].copy));
    kept_[number].copy.reset();
  }
  void drop_copy(std::size_t number) noexcept override { kept_[number].copy.reset(); }

 protected:
  std::vector<slot_values<In, Out>>& slots_;

 private:
  Kept kept_;
};

template <class In, class Out>
using calls_for_one = named_calls<In, Out, std::array<kept_item<In>, 1>>;

template <class In, class Out>
using calls_for_several = named_calls<In, Out, std::unique_ptr<kept_item<In>[]>>;

template <class In, class Out, class Calls>
class slot_calls_of;

template <class In, class Out>
class slot_calls_of<In, Out, plain_calls<In, Out>> final : public calls_for_several<In, Out> {
 public:
  slot_calls_of(std::vector<slot_values<In, Out>>& slots,
                std::unique_ptr<plain_calls<In, Out>> calls)
      : calls_for_several<In, Out>(slots, kept_by(*calls)), calls_(std::move(calls)) {}

  bool reserves_memory() const noexcept override { return calls_->reserves_memory; }
  std::size_t memory_needed(std::size_t slot) const override {
    return calls_->memory_needed(*this->slots_[slot].in);
  }
  void call(std::size_t slot, const item_random& draw, slot_calls::time_limit) override {
    auto& item = this->slots_[slot];
    calls_->call(std::move(*item.in), draw, item.out);
  }
  void call(several_call& call) override {
    waiting_items<In, Out> waiting(this->slots_, call);
    calls_->call(waiting);
  }

 private:
  static std::unique_ptr<kept_item<In>[]> kept_by(const plain_calls<In, Out>& calls) {
    return std::unique_ptr<kept_item<In>[]>(new kept_item<In>[calls.items_at_a_time]);
  }

  std::unique_ptr<plain_calls<In, Out>> calls_;
};

template <class In, class Out, class Result>
class slot_calls_of<In, Out, task_calls<In, Result>> final : public calls_for_one<In, Out> {
 public:
  slot_calls_of(std::vector<slot_values<In, Out>>& slots,
                std::unique_ptr<task_calls<In, Result>> calls)
      : calls_for_one<In, Out>(slots, {}), calls_(std::move(calls)) {}

  void call(std::size_t slot, const item_random& draw, slot_calls::time_limit limit) override {
    auto made = calls_->call(std::move(*this->slots_[slot].in), draw);
    made.require_unstarted();
    task_.emplace(limit ? with_timeout(*limit, std::move(made), call_of_function)
                        : std::move(made));
  }
  bool start(const promise_base& parent, completion& done) override {
    return task_->start(parent, done) != arrival::later;
  }
  void finish(std::size_t slot) override {
    auto ended = std::move(*task_);
    task_.reset();
    assign(this->slots_[slot].out, ended.take());
  }

 private:
  std::unique_ptr<task_calls<In, Result>> calls_;
  std::optional<task<Result>> task_;
};

// The items of a concurrent stage.
template <class In, class Out, class Calls>
class concurrent_stage final : public concurrent_core {
 public:
  concurrent_stage(const open_context& run, stage_counters& counters,
                   const concurrent_options& options,
                   counted_ptr<const stage_function<Calls>> function)
      : concurrent_core(run, counters, options),
        items_(options.slots),
        function_(std::move(function)) {}

 private:
  std::unique_ptr<slot_calls> begin_calls() override {
    return std::unique_ptr<slot_calls>(
        new slot_calls_of<In, Out, Calls>(items_, function_->begin()));
  }

  void put_item(std::size_t slot, void* item) override {
    items_[slot].in.emplace(std::move(*static_cast<In*>(item)));
  }
  std::string name_of_item(const void* item) const override {
    return name_of(*static_cast<const In*>(item));
  }
  void drop_item(std::size_t slot) noexcept override { items_[slot].in.reset(); }

  void* result(std::size_t slot) noexcept override {
    auto& out = items_[slot].out;
    return out ? std::addressof(*out) : nullptr;
  }
  void count_result(std::size_t slot) override { count_out(counters(), *items_[slot].out); }
  void drop_result(std::size_t slot) noexcept override { items_[slot].out.reset(); }
  void substitute(std::size_t slot) override {
    detail::substitute(items_[slot].out, options().substitute);
  }

  std::vector<slot_values<In, Out>> items_;
  counted_ptr<const stage_function<Calls>> function_;
};

// Opens the upstream, starts a stage behind it, and returns the generator of the stage.
template <class Out, class In, class Calls>
async_generator<Out> open_concurrent(const pipeline<In>& in, const open_context& run,
                                     const concurrent_options& options,
                                     const counted_ptr<const stage_function<Calls>>& function) {
  auto& counters = run.add_stage();
  if (function->draws_random) run.depends_on_epoch(run.at->facts().name(), run.pass->seed);
  auto adjusted = options.for_items(function->items_at_a_time).with(run.concurrency_of_trial());
  adjusted.number = in.last()->facts().number() + 1;
  adjusted.draws_random = function->draws_random;
  std::shared_ptr<concurrent_core> stage(
      new concurrent_stage<In, Out, Calls>(run, counters, adjusted, function));
  return async_generator<Out>(open_behind(*in.last(), run, owner(std::move(stage))));
}

}  // namespace lade::detail
