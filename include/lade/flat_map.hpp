// flat_map: several items of one.

#pragma once

#include <lade/async_generator.hpp>
#include <lade/autotune.hpp>
#include <lade/detail/common/shared_const.hpp>
#include <lade/detail/coroutines/owner.hpp>
#include <lade/detail/pipeline/items.hpp>
#include <lade/detail/pipeline/run_state.hpp>
#include <lade/detail/stages/in_place_calls.hpp>
#include <lade/detail/stages/spreading.hpp>
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
  // `automatic`: as many as the run may use CPUs for its automatic stages, all together (see
  // autotune.hpp). 1: the function is called when the next stage asks for an item, on that stage's
  // thread, without a queue.
  unsigned concurrency = 1;

  // How many parts of each item may wait for their turn, up to 1,048,576; 0 counts as 1.
  std::size_t buffer = 16;

  // Input: all parts of one item, then those of the next. Completion: as they come. Those of
  // several items are then mixed, so that there is no state to go on from.
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

// What a flat_map has been told.
struct flat_map_settings {
  // Throws error(invalid_argument) that names the stage and the option that cannot work.
  flat_map_settings(const flat_map_options& given, std::string stage);

  failure_policy policy() const {
    return {.finally = options.on_error, .budget = options.error_budget};
  }

  // What the stage says of itself. `tells_members`: whether an item that is a group has a size.
  node_facts facts(node_ptr in, bool tells_members) const;

  // How many items a run takes apart at a time, and the entry of an automatic stage in its list.
  unsigned calls_at_a_time(run_state& run) const;
  void list(const open_context& run, const stage_counters& counters, unsigned concurrency) const;

  flat_map_options options;
  std::string name;
};

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

// Whether items are groups of others: containers, and batches of tensors. The size of text or bytes
// counts no members.
template <class T>
concept group = !std::convertible_to<const T&, std::string_view> &&
                !requires(const T& item) { item.bytes().data(); } && requires(const T& item) {
                  { item.size() } -> std::convertible_to<std::size_t>;
                };

// The size of a group; 0 for other items, and for those whose size cannot be found out.
template <class T>
std::size_t members_of(const T& item) noexcept {
  if constexpr (group<T>) {
    try {
      return static_cast<std::size_t>(item.size());
    } catch (...) {}
  }
  return 0;
}

// A flat_map of items of one type into items of another, whatever its function.
template <class In, class Out>
class flat_mapping : public node<Out> {
 public:
  flat_mapping(pipeline<In> in, shared_const<flat_map_settings> settings)
      : node<Out>(settings->facts(in.last(), group<In>)),
        in_(std::move(in)),
        settings_(std::move(settings)) {}

  const flat_map_options& options() const noexcept { return settings_->options; }

  async_generator<Out> open(const open_context& run) const override {
    auto& counters = run.add_stage(settings_->name);
    const auto of_trial = run.concurrency_of_trial();
    const bool shares_cpus = options().concurrency == automatic && !of_trial;
    auto wide = of_trial.value_or(settings_->calls_at_a_time(*run.run));
    if (wide > 1 || options().pool || shares_cpus)
      return spread_wide(run, counters, wide, shares_cpus);
    in_place_calls calls(run, counters);
    return spread(counted_ptr(this), in_.open(run), run, counters, std::move(calls));
  }

  // The parts of one item, each with a lineage of its own. What is yielded goes on before the
  // function's generator ends; a failure keeps what was yielded before it. The name must outlive
  // the generator.
  async_generator<Out> parts(In item, const kept_name<In>& name, lineage origin, open_context run,
                             stage_counters& counters) const {
    if (run.run->failures().is_behind()) co_await run.run->failures().room();
    run.throw_if_stopped(counters);
    hooked_call hooked(*run.run, counters, origin);
    part_lineage origins(origin, members_of(item));
    std::optional<async_generator<Out>> made;
    while (true) {
      Out* part = nullptr;
      std::exception_ptr failure;
      try {
        if (!made) {
          if (hooked.has_hooks()) hooked.enter(name.text(), view_of(item));
          made.emplace(call(std::move(item)));
        }
        part = co_await made->next();
        if (!part) hooked.leave({});
      } catch (...) {
        hooked.end(std::current_exception(), {});
        failure = run.failure(counters, settings_->policy(), name.text(), origin);
      }
      if (failure) std::rethrow_exception(failure);
      if (!part) co_return;
      run.throw_if_stopped(counters);
      with_lineage<Out> yielded{origins.next(), *part};
      co_yield yielded;
    }
  }

 private:
  // What the function makes of an item. Called, as all of it, by the first next().
  virtual async_generator<Out> call(In item) const = 0;

  static async_generator<Out> spread(counted_ptr<const flat_mapping> self, async_generator<In> in,
                                     open_context run, stage_counters& counters,
                                     in_place_calls calls) {
    kept_name<In> name;
    while (auto* item = co_await in.next()) {
      bump(counters.in);
      name.keep(*item);
      auto parts = self->parts(std::move(*item), name, in.origin(), run, counters);
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
        count_out(counters, *part);
        co_yield *part;
      }
    }
  }

  async_generator<Out> spread_wide(const open_context& run, stage_counters& counters,
                                   unsigned concurrency, bool shares_cpus) const {
    using stage = spreading<In, Out, flat_mapping>;
    if (shares_cpus) settings_->list(run, counters, concurrency);
    owner wide(std::make_shared<stage>(run, counters, counted_ptr(this), concurrency, shares_cpus));
    wide->start(in_.open(run.until(wide->stop_token()).taken_by(wide->wanted())));
    return stage::deliver(std::move(wide));
  }

  pipeline<In> in_;
  shared_const<flat_map_settings> settings_;
};

template <class In, class Out, class F>
class flat_mapping_of final : public flat_mapping<In, Out> {
 public:
  flat_mapping_of(pipeline<In> in, shared_const<flat_map_settings> settings,
                  shared_const<F> function)
      : flat_mapping<In, Out>(std::move(in), std::move(settings)), function_(std::move(function)) {}

 private:
  async_generator<Out> call(In item) const override { return each(*function_, std::move(item)); }

  static async_generator<Out> each(const F& function, In item) {
    auto parts = std::invoke(function, std::move(item));
    if constexpr (requires { parts.next(); }) {
      while (auto* part = co_await parts.next()) co_yield *part;
    } else {
      for (auto&& part : parts) {
        Out value(take_element<decltype(parts)>(std::forward<decltype(part)>(part)));
        co_yield value;
      }
    }
  }

  shared_const<F> function_;
};

// The type of the items in a range or of a generator; none for anything else.
template <class Many>
struct element {};
template <std::ranges::range Many>
struct element<Many> {
  using type = std::ranges::range_value_t<Many>;
};
template <class T>
struct element<async_generator<T>> {
  using type = T;
};
template <class Many>
concept has_elements = requires { typename element<Many>::type; };

}  // namespace detail

template <class F>
class flat_map_stage {
 public:
  flat_map_stage(F function, const flat_map_options& options)
      : function_(std::move(function)),
        settings_(
            detail::flat_map_settings(options, detail::stage_name<F>(options.name, "flat_map"))) {}

  template <class In>
  auto attach(const pipeline<In>& in) const {
    constexpr bool fits = std::is_invocable_v<const F&, In>;
    static_assert(fits,
                  "lade::flat_map: the function must take the stage's item, by value or const "
                  "reference, and be callable as const: not a mutable lambda, not one that takes "
                  "T&");
    if constexpr (fits)
      return attach_for<std::remove_cvref_t<std::invoke_result_t<const F&, In>>>(in);
    else
      return in;
  }

 private:
  template <class Many, class In>
  auto attach_for(const pipeline<In>& in) const {
    constexpr bool fits = detail::has_elements<Many>;
    static_assert(fits,
                  "lade::flat_map: the function must return a range of the new items, or an "
                  "async_generator");
    if constexpr (fits) {
      using out = typename detail::element<Many>::type;
      detail::counted_ptr step(new detail::flat_mapping_of<In, out, F>(in, settings_, function_));
      return pipeline<out>(std::move(step));
    } else {
      return in;
    }
  }

  detail::shared_const<F> function_;
  detail::shared_const<detail::flat_map_settings> settings_;
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
