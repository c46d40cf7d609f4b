// flat_map: turns one item into several.

#pragma once

#include <lade/async_generator.hpp>
#include <lade/autotune.hpp>
#include <lade/detail/common/shared_const.hpp>
#include <lade/detail/coroutines/owner.hpp>
#include <lade/detail/pipeline/items.hpp>
#include <lade/detail/pipeline/run_state.hpp>
#include <lade/detail/stages/concurrent_flat_map.hpp>
#include <lade/detail/stages/inline_calls.hpp>
#include <lade/error.hpp>
#include <lade/failure.hpp>
#include <lade/pipeline.hpp>
#include <lade/thread_pool.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
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
  // The number of items in flight: how many are split at a time, in parallel on the CPU pool. 1 to
  // 1,048,576.
  // - `automatic`: chosen by the run; see autotune.hpp. Functions that return a range compute: all
  //   automatic stages of the run together use as many CPUs as the run may use for them. Generators
  //   may wait, as for a server: the run searches for the number.
  // - 1, without a custom pool: the function runs inline, on the thread of the next stage when that
  //   requests an item, without a queue.
  unsigned concurrency = 1;

  // The number of parts that may wait for the next stage, up to 1,048,576; 0 counts as 1.
  // - In input order, the number for each item. Its queue is allocated when the item is taken, so a
  //   large number slows items of few parts.
  // - In completion order, the number for all items together. Each item in flight may hold one part
  //   more.
  std::size_t buffer = 16;

  // The limit in bytes of the parts of each item that wait for the next stage, as for
  // prefetch_options::bytes. In completion order all items share the limit, and each may exceed it
  // by one part. For the bytes of a part see cache().
  //
  // `buffer` and `buffer_bytes` have no effect while the function runs inline.
  std::uint64_t buffer_bytes = ~std::uint64_t{0};  // no limit

  // item_order::input yields all parts of one item before the parts of the next. With
  // item_order::completion, parts are yielded as soon as they are ready. The parts of several items
  // are then mixed, so a run has no state.
  item_order order = item_order::input;

  // Policy for items that fail; see failure.hpp. Parts that were yielded before the failure are
  // kept. So there are no retries: do work that may be repeated in a map before the flat_map.
  std::optional<lade::on_error> on_error = {};  // default: the run's
  lade::error_budget error_budget = {};

  // The pool on which items are split; null: the CPU pool of the runtime. Must outlive the runs.
  thread_pool* pool = nullptr;

  std::string_view name = {};  // name in statistics and errors
};

namespace detail {

// The most items that a concurrent flat_map holds: the items that it splits, and the parts in their
// queues. Parts that a function returns in a container belong to the item that is split. The
// concurrency must not be `automatic`.
std::uint64_t most_held(const flat_map_options& options) noexcept;

// The options of a flat_map, checked, with its name.
struct flat_map_settings {
  // Throws error(invalid_argument) that names the stage and the option if an option is invalid.
  flat_map_settings(const flat_map_options& given, std::string stage);

  failure_policy policy() const {
    return {.finally = options.on_error, .budget = options.error_budget};
  }

  // The facts of the node. `tells_members`: whether the items are groups whose size is known.
  node_facts facts(node_ptr in, bool tells_members) const;

  // calls_at_a_time(): how many items a run splits at a time; at most, if it is searched for.
  // list(): adds an automatic stage to the run's list of settings. search(): the tuner of that
  // number.
  unsigned calls_at_a_time(run_state& run, bool is_searched) const;
  void list(const open_context& run, const stage_counters& counters, unsigned concurrency) const;
  tuner search(unsigned most) const noexcept;

  flat_map_options options;
  std::string name;
};

// Whether a range owns its elements. The elements of a const container are const; those of a const
// view are not.
template <class R>
concept owns_elements =
    std::ranges::range<const R> &&
    std::is_const_v<std::remove_reference_t<std::ranges::range_reference_t<const R>>>;

// An element of a range: an rvalue if the range owns it, so that the caller moves it.
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

// Whether items of type T are groups of other items: containers and batches. Text and bytes are no
// groups: their size does not count items.
template <class T>
concept group = !std::convertible_to<const T&, std::string_view> &&
                !requires(const T& item) { item.bytes().data(); } && requires(const T& item) {
                  { item.size() } -> std::convertible_to<std::size_t>;
                };

// The size of a group. Returns 0 for other items, and if size() throws.
template <class T>
std::size_t members_of(const T& item) noexcept {
  if constexpr (group<T>) {
    try {
      return static_cast<std::size_t>(item.size());
    } catch (...) {}
  }
  return 0;
}

// The node of a flat_map from items of type In to items of type Out. Independent of the function's
// type.
template <class In, class Out>
class flat_mapping : public node<Out> {
 public:
  // `may_wait`: whether the function returns a generator.
  flat_mapping(pipeline<In> in, shared_const<flat_map_settings> settings, bool may_wait)
      : node<Out>(settings->facts(in.last(), group<In>)),
        in_(std::move(in)),
        settings_(std::move(settings)),
        may_wait_(may_wait) {
    measure_for<Out>(options().buffer_bytes, settings_->name, "buffer_bytes");
  }

  const flat_map_options& options() const noexcept { return settings_->options; }

  async_generator<Out> open(const open_context& run) const override {
    auto& counters = run.add_stage();
    const auto of_trial = run.concurrency_of_trial();
    const bool is_automatic = options().concurrency == automatic && !of_trial;
    const auto wide =
        of_trial.value_or(settings_->calls_at_a_time(*run.run, is_automatic && may_wait_));
    if (wide > 1 || options().pool || is_automatic)
      return spread_wide(run, counters, wide, is_automatic);
    inline_calls calls(run, counters);
    return spread(counted_ptr(this), in_.open(run), run, counters, std::move(calls));
  }

  // Yields the parts of one item, each with its own lineage, as soon as the function yields them.
  // After a failure, the parts yielded before remain delivered. `name` must outlive the generator.
  async_generator<Out> parts(In item, const kept_name<In>& name, lineage origin, open_context run,
                             stage_counters& counters) const {
    if (run.run->failures().is_behind()) co_await run.run->failures().caught_up();
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
  // The generator of the function's parts. The function is called by the first next(), like the
  // whole body of the generator.
  virtual async_generator<Out> call(In item) const = 0;

  static async_generator<Out> spread(counted_ptr<const flat_mapping> self, async_generator<In> in,
                                     open_context run, stage_counters& counters,
                                     inline_calls calls) {
    kept_name<In> name;
    while (auto* item = co_await in.next()) {
      increment(counters.in);
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
                                   unsigned concurrency, bool is_automatic) const {
    using stage = concurrent_flat_map<In, Out, flat_mapping>;
    if (is_automatic) settings_->list(run, counters, concurrency);
    owner wide(std::make_shared<stage>(run, counters, counted_ptr(this), concurrency,
                                       is_automatic && !may_wait_));
    if (is_automatic && may_wait_) wide->tune(run.at->key(), settings_->search(concurrency));
    wide->start(in_.open(wide->before(run)));
    return stage::deliver(std::move(wide));
  }

  pipeline<In> in_;
  shared_const<flat_map_settings> settings_;
  bool may_wait_;
};

template <class In, class Out, class F>
class flat_mapping_of final : public flat_mapping<In, Out> {
 public:
  flat_mapping_of(pipeline<In> in, shared_const<flat_map_settings> settings,
                  shared_const<F> function)
      : flat_mapping<In, Out>(std::move(in), std::move(settings), is_async_generator<made>),
        function_(std::move(function)) {}

 private:
  using made = std::remove_cvref_t<std::invoke_result_t<const F&, In>>;

  async_generator<Out> call(In item) const override { return each(*function_, std::move(item)); }

  static async_generator<Out> each(const F& function, In item) {
    auto parts = std::invoke(function, std::move(item));
    if constexpr (is_async_generator<made>) {
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

// The type of the items of a range or of a generator. Has no `type` for anything else.
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

// Replaces every item by the items of `function(item)`, its parts. The function returns a range, or
// an async_generator, whose items are passed on as soon as they are yielded. A std::string is a
// range too: its parts are its characters.
//
// Ownership: elements are moved out of a container. Elements of a view (a std::span, a
// std::string_view) are copied; the memory that the view refers to must outlive the run.
//
// Thread: by default, the function runs inline: on the thread of the next stage (of the CPU pool)
// when that requests an item.
//
// Throws error(invalid_argument) that names the option if an option is invalid.
template <class F>
flat_map_stage<std::decay_t<F>> flat_map(F&& function, const flat_map_options& options = {}) {
  return {std::forward<F>(function), options};
}

}  // namespace lade
