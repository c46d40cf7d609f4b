// flat_map: several items of one.

#pragma once

#include <lade/async_generator.hpp>
#include <lade/detail/in_place_calls.hpp>
#include <lade/detail/items.hpp>
#include <lade/detail/owner.hpp>
#include <lade/detail/run_state.hpp>
#include <lade/detail/shared_const.hpp>
#include <lade/detail/spreading.hpp>
#include <lade/error.hpp>
#include <lade/failure.hpp>
#include <lade/pipeline.hpp>
#include <lade/thread_pool.hpp>

#include <concepts>
#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <ranges>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace lade {

struct flat_map_options {
  // How many items are taken apart at a time, beside each other on the CPU pool: 1 to 1,048,576;
  // not `automatic`. 1: the function is
  // called when the next stage asks for an item, on that stage's thread, without a queue.
  unsigned concurrency = 1;

  // How many parts of each item may wait for their turn, up to 1,048,576; 0 counts as 1.
  std::size_t buffer = 16;

  // Input: all parts of one item, then those of the next. Completion: as they come. Those of
  // several items are then mixed, so that there is no state to go on from, and parts of one item
  // may draw the same random numbers.
  item_order order = item_order::input;

  // What becomes of items that fail; see failure.hpp. Parts that have been given are kept, so there
  // are no retries: what may be repeated belongs into a map before.
  std::optional<lade::on_error> on_error = {};  // the run's if not given
  lade::error_budget error_budget = {};

  // Where items are taken apart, if not on the CPU pool of the runtime. Must outlive the runs.
  thread_pool* pool = nullptr;

  std::string_view name = {};  // in statistics and errors
};

namespace detail {

// Throws error(invalid_argument) that names the stage and the option that cannot work.
void require_flat_map(std::string_view stage, const flat_map_options& options);

// Whether the elements die with the range: a container passes its constness on to them, a view of
// what others own does not.
template <class R>
concept owns_elements =
    std::ranges::range<const R> &&
    std::is_const_v<std::remove_reference_t<std::ranges::range_reference_t<const R>>>;

// An element of a range: to be moved if the range owns it.
template <class R, class Element>
decltype(auto) take_element(Element&& element) noexcept {
  if constexpr (owns_elements<R>) {
    return std::move(element);
  } else {
    static_assert(std::constructible_from<std::ranges::range_value_t<R>, Element>,
                  "lade::flat_map: what a view refers to is copied: return a container");
    return std::forward<Element>(element);
  }
}

}  // namespace detail

template <class F>
class flat_map_stage {
 public:
  flat_map_stage(F function, const flat_map_options& options)
      : function_(std::move(function)),
        options_(options),
        name_(detail::stage_name<F>(options.name, "flat_map")) {
    detail::require_flat_map(name_, options_);
  }

  template <class In>
  auto attach(const pipeline<In>& in) const {
    using out = part_of<In>;
    return detail::make_pipeline<out>(
        in.length() + 1, [in, self = *this](const detail::opening& run) {
          auto& counters = run.add_stage(self.name_);
          auto whole = run.making_parts(self.name_);
          auto wide = run.concurrency.value_or(self.options_.concurrency);
          if (wide > 1 || self.options_.pool)
            return self.template spread_wide<out>(in, whole, counters, wide);
          detail::in_place_calls calls(run, counters);
          return spread<out>(in.open(whole), self, run, counters, std::move(calls));
        });
  }

  const flat_map_options& options() const noexcept { return options_; }

  // The parts of one item, each with the item's lineage. What is yielded goes on before the
  // function's generator ends; a failure keeps what was yielded before it. The name must outlive
  // the generator.
  template <class Out, class In>
  async_generator<Out> parts(In item, const detail::kept_name<In>& name, lineage origin,
                             detail::opening run, detail::stage_counters& counters) const {
    detail::hooked_call call(*run.run, counters, item, origin);
    auto made = each<Out>(*function_, std::move(item));
    while (true) {
      Out* part = nullptr;
      std::exception_ptr failure;
      try {
        part = co_await made.next();
        if (!part) call.leave(nullptr);
      } catch (...) {
        call.leave(std::current_exception());
        failure = run.failure(counters, policy(), name.text(), origin);
      }
      if (failure) std::rethrow_exception(failure);
      if (!part) co_return;
      detail::with_lineage<Out> yielded{origin, *part};
      co_yield yielded;
    }
  }

 private:
  template <class Many>
  struct element {
    using type = std::ranges::range_value_t<Many>;
  };
  template <class T>
  struct element<async_generator<T>> {
    using type = T;
  };
  template <class In>
  using part_of = typename element<std::remove_cvref_t<std::invoke_result_t<const F&, In>>>::type;

  template <class Out, class In>
  static async_generator<Out> spread(async_generator<In> in, flat_map_stage self,
                                     detail::opening run, detail::stage_counters& counters,
                                     detail::in_place_calls calls) {
    detail::kept_name<In> name;
    while (auto* item = co_await in.next()) {
      detail::bump(counters.in);
      name.keep(*item);
      auto parts = self.template parts<Out>(std::move(*item), name, in.origin(), run, counters);
      while (true) {
        Out* part = nullptr;
        std::exception_ptr failure;
        calls.begin(name, in.origin());
        try {
          part = co_await parts.next();
        } catch (...) {
          failure = std::current_exception();
        }
        calls.end(name, in.origin(), parts.awaited());
        if (failure) std::rethrow_exception(failure);
        if (!part) break;
        detail::count_out(counters, *part);
        co_yield *part;
      }
    }
  }

  template <class Out, class In>
  async_generator<Out> spread_wide(const pipeline<In>& in, const detail::opening& run,
                                   detail::stage_counters& counters, unsigned concurrency) const {
    if (options_.order == item_order::completion)
      run.refuse_state(name_ + " gives parts of several items as they come");
    using spreading = detail::spreading<In, Out, flat_map_stage>;
    detail::owner stage(std::make_shared<spreading>(run, counters, *this, concurrency));
    stage->start(in.open(run.until(stage->stop_token())));
    return spreading::deliver(std::move(stage));
  }

  template <class Out, class In>
  static async_generator<Out> each(const F& function, In item) {
    auto parts = std::invoke(function, std::move(item));
    if constexpr (requires { parts.next(); }) {
      while (auto* part = co_await parts.next()) co_yield *part;
    } else {
      for (auto&& part : parts) {
        Out value(detail::take_element<decltype(parts)>(std::forward<decltype(part)>(part)));
        co_yield value;
      }
    }
  }

  detail::failure_policy policy() const {
    return {.finally = options_.on_error, .budget = options_.error_budget};
  }

  detail::shared_const<F> function_;
  flat_map_options options_;
  std::string name_;
};

// Replaces every item by the items of `function(item)`: a range, or an async_generator, whose items
// go on as they come. Elements are moved out of a container, and copied out of a view (a std::span,
// a std::string_view), which belong to others and must outlive the run. Called when the next stage
// asks for an item, on that stage's thread of the CPU pool, unless the options say otherwise.
// Throws error(invalid_argument) that names the option for one that cannot work.
template <class F>
flat_map_stage<std::decay_t<F>> flat_map(F&& function, const flat_map_options& options = {}) {
  return {std::forward<F>(function), options};
}

}  // namespace lade
