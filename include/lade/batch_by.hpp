// batch_by: batches that a custom accumulator collects.

#pragma once

#include <lade/async_generator.hpp>
#include <lade/detail/pipeline/items.hpp>
#include <lade/detail/pipeline/run_state.hpp>
#include <lade/detail/stages/inline_calls.hpp>
#include <lade/from.hpp>
#include <lade/pipeline.hpp>

#include <concepts>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace lade {

struct batch_by_options {
  std::optional<lade::on_error> on_error = {};  // default: the run's
  lade::error_budget error_budget = {};
  std::string_view name = {};  // name in statistics and errors; by default that of its class
};

// An object that collects items of type T in batches. `add(item)` returns the batch that the item
// completes, or nothing. `flush()` returns one of the incomplete batches, or nothing; the stage
// calls it at the end until it returns nothing. After a failure of the input it does so too, unless
// a later stage drops short batches: see batch().
template <class A, class T>
concept accumulator = std::copy_constructible<A> && requires(A& batches, T&& item) {
  typename detail::optional_value<decltype(batches.add(std::move(item)))>::type;
  { batches.flush() } -> std::same_as<decltype(batches.add(std::move(item)))>;
};

template <class A>
class batch_by_stage {
 public:
  batch_by_stage(A batches, const batch_by_options& options)
      : accumulator_(std::move(batches)),
        policy_{.finally = options.on_error, .budget = options.error_budget},
        name_(detail::stage_name<A>(options.name, "batch_by")) {
    detail::require_budget(name_, options.error_budget, options.on_error);
  }

  template <class T>
  auto attach(const pipeline<T>& in) const {
    static_assert(accumulator<A, T>,
                  "lade::batch_by: the accumulator must be copyable, with add(item), which returns "
                  "a std::optional of a batch, and flush(), which returns the same");
    using out = typename detail::optional_value<decltype(std::declval<A&>().flush())>::type;
    return detail::make_pipeline<out>(
        detail::node_facts::behind(in.last(), "batch_by", name_)
            .yielding(cardinality::group)
            .ordered(stage_ordering::custom)
            .with(policy_)
            .refusing_state(name_ + " decides which items it holds back"),
        [in, self = *this](const detail::open_context& run) {
          auto& counters = run.add_stage();
          detail::inline_calls calls(run, counters);
          auto copy = [&] { return std::make_unique<batch_by_stage>(self); };
          auto own = detail::begin_with(copy, run, counters);
          return collect<out>(in.open(run), std::move(own), run, counters, std::move(calls));
        });
  }

 private:
  template <class Out, class T>
  static async_generator<Out> collect(async_generator<T> in, std::unique_ptr<batch_by_stage> self,
                                      detail::open_context run, detail::stage_counters& counters,
                                      detail::inline_calls calls) {
    std::exception_ptr failure;
    detail::kept_name<T> name;
    while (auto* item = co_await in.next().deferring(failure)) {
      detail::increment(counters.in);
      if (run.run->failures().is_behind()) co_await run.run->failures().caught_up();
      std::optional<Out> full;
      name.keep(*item);
      calls.begin(name, in.origin());
      try {
        full = self->accumulator_.add(std::move(*item));
      } catch (...) {
        failure = run.failure(counters, self->policy_, name.text(), in.origin());
      }
      calls.end(name, in.origin());
      if (failure) break;
      if (!full) continue;
      detail::release_item(*item);
      detail::count_out(counters, *full);
      co_yield *full;
    }
    if (failure && run.rules().fails_at_once()) std::rethrow_exception(failure);
    detail::part_lineage origins(in.origin(), 0);
    while (auto rest = self->flush(run, counters)) {
      detail::count_out(counters, *rest);
      detail::with_lineage<Out> yielded{origins.next(), *rest};
      co_yield yielded;
    }
    if (failure) std::rethrow_exception(failure);
  }

  // One of the batches that the accumulator still holds; nothing after a failure.
  auto flush(const detail::open_context& run, detail::stage_counters& counters)
      -> decltype(std::declval<A&>().flush()) {
    try {
      return accumulator_.flush();
    } catch (...) {
      auto failure = run.failure(counters, policy_, {}, {});
      if (failure) std::rethrow_exception(failure);
      return std::nullopt;
    }
  }

  A accumulator_;
  detail::failure_policy policy_;
  std::string name_;
};

// Yields the batches that an accumulator collects. Each run uses a separate copy of the
// accumulator. The copy runs inline: on the thread of the next stage (of the CPU pool) when that
// requests a batch.
//
// If add() throws and the policy is on_error::skip, the item is dropped; the accumulator is used
// further in the state that add() left. A flush() that throws is not called again.
//
// A run with this stage has no state (no checkpoint), because only the accumulator knows which
// items it holds. Throws error(invalid_argument) if the error budget is invalid.
template <class A>
batch_by_stage<std::decay_t<A>> batch_by(A&& accumulator, const batch_by_options& options = {}) {
  return {std::forward<A>(accumulator), options};
}

}  // namespace lade
