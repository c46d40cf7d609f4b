// map: applies a function to every item.

#pragma once

#include <lade/async_generator.hpp>
#include <lade/buffer_pool.hpp>
#include <lade/detail/common/counted.hpp>
#include <lade/detail/common/shared_const.hpp>
#include <lade/detail/pipeline/items.hpp>
#include <lade/detail/stages/calls.hpp>
#include <lade/detail/stages/concurrent.hpp>
#include <lade/detail/stages/inline_calls.hpp>
#include <lade/per_run.hpp>
#include <lade/per_worker.hpp>
#include <lade/pipeline.hpp>
#include <lade/thread_pool.hpp>

#include <any>
#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace lade {

struct map_options {
  // The number of items in flight, up to 1,048,576.
  // - `automatic`: chosen by the run; see autotune.hpp.
  // - 0: the static constant default_concurrency of the function, if it has one, as lade::io::read
  //   has 64. Else the number of threads of the CPU pool, or 16 for functions that return tasks.
  // - 1: a plain function runs inline: on the thread of the next stage when that requests an item,
  //   without a queue. The exception is a stage with a buffer or a limit in bytes, retries, a
  //   timeout, a deadline or a custom pool.
  //
  // A plain function is called by at most as many threads as the pool has.
  unsigned concurrency = 0;

  // How many finished items may wait for the next stage, in addition to `concurrency`, up to
  // 1,048,576. Default: the value of `concurrency`.
  std::optional<unsigned> buffer = {};

  // The limit in bytes of the results. While one more would exceed it, the stage takes no item.
  // These count:
  // - A finished item that waits for the next stage: its bytes, as cache() counts them.
  // - An item in flight, whose result is not known: the bytes of the largest result so far.
  //
  // So:
  // - Until the first result is known, `concurrency` items are in flight, whatever their size.
  // - The limit is exceeded only by a result that is larger than all before.
  // - After one large result, fewer items are in flight for the rest of the run.
  // - One item is always allowed.
  std::uint64_t buffer_bytes = ~std::uint64_t{0};  // no limit

  item_order order = item_order::input;

  // Policy for items for which the function throws; see failure.hpp. `substitute` holds an item of
  // the function's result type, which the stage yields instead of the failed one.
  lade::retry retry = {};
  std::optional<lade::on_error> on_error = {};  // default: the run's
  std::any substitute = {};
  lade::error_budget error_budget = {};

  // `timeout`: how long one call may take. `deadline`: how long one item may take, with all its
  // calls and the pauses between them. 0 and nanoseconds::max() set no limit. An item that takes
  // longer fails with errc::timed_out. A task is then asked to stop. A plain function cannot be
  // interrupted: the stage drops its result when it returns.
  std::chrono::nanoseconds timeout = {};
  std::chrono::nanoseconds deadline = {};

  // The pool that calls a plain function; null: the CPU pool of the runtime. Other stages and runs
  // may share the pool. It must outlive the runs.
  thread_pool* pool = nullptr;

  // The allocator of buffers that the function allocates, within the budget of the runtime; null:
  // the allocator of the runtime. The CPU must be able to write the memory. For the lifetime see
  // memory_resource.hpp.
  memory_resource* memory = nullptr;

  // The name of the stage in statistics and errors. If not given: the name of the function object's
  // class, such as "read" for lade::io::read. For lambdas, plain functions and pointers, "map",
  // because the library cannot find out their names.
  std::string_view name = {};

  // The kind of the stage in pipeline::describe(); "map" if not given. For stages that are built
  // from a map.
  std::string_view kind = {};
};

namespace detail {

// The options of a map, checked, with its name.
class map_settings {
 public:
  // Throws error(invalid_argument) that names the stage and the option if an option is invalid.
  map_settings(const map_options& options, std::string name, unsigned default_concurrency = 0);

  const std::string& name() const noexcept { return name_; }
  const std::string& kind() const noexcept { return kind_; }
  item_order order() const noexcept { return options_.order; }
  const std::any& substitute() const noexcept { return options_.substitute; }
  std::uint64_t buffer_bytes() const noexcept { return options_.buffer_bytes; }
  failure_policy policy() const;

  // The pool from which the function allocates its buffers: within the budget of the runtime, in
  // the memory of the options, else in `otherwise`, else in that of the runtime.
  buffer_pool memory_of(lade::runtime& where, memory_resource* otherwise) const;

  // Throws error(invalid_argument) if the options do not fit the items.
  template <class In, class Out>
  void require_fit(bool tasks) const {
    bool substitutes = !options_.substitute.has_value();
    if constexpr (std::copy_constructible<Out>)
      substitutes = substitutes || std::any_cast<Out>(&options_.substitute) != nullptr;
    require_fit(substitutes, std::copy_constructible<In>, tasks);
  }

  // The properties of the function of a stage.
  struct function_facts {
    bool is_task;        // whether it returns tasks
    bool drops;          // whether it may drop items
    unsigned at_a_time;  // items per call
  };

  // The facts of a node with these settings.
  node_facts facts(node_ptr in, std::string kind, const function_facts& function) const;
  node_facts concurrent_facts(node_facts facts, const function_facts& function) const;

  // Whether a plain function runs inline, on the thread of the next stage, without workers.
  bool is_inline(const run_options& run) const noexcept;

  // The options of the workers of a stage that does not run inline. waiting(): for functions that
  // return tasks. computing(): for plain functions.
  concurrent_options waiting(const run_state& run) const;
  concurrent_options computing(run_state& run) const;

 private:
  // The most items that the stage holds, unless that depends on the run.
  std::optional<std::uint64_t> most_held(unsigned at_a_time) const;
  void require_fit(bool substitutes, bool may_retry, bool tasks) const;
  concurrent_options tuned(unsigned most) const;
  concurrent_options with_policy(concurrent_options result) const;
  time_limits limits() const noexcept { return {options_.timeout, options_.deadline}; }

  map_options options_;
  std::shared_ptr<memory_resource> memory_;  // share in options_.memory, if it is shared
  std::string name_;
  std::string kind_;
};

// The function's own default_concurrency; 0 if it has none.
template <class F>
constexpr unsigned default_concurrency() {
  if constexpr (requires { F::default_concurrency; })
    return F::default_concurrency;
  else
    return 0;
}

// The node of a map from items of type In to items of type Out. Independent of the function's type.
template <class In, class Out, class Calls>
class mapping final : public node<Out> {
  static constexpr bool computes = std::same_as<Calls, plain_calls<In, Out>>;

 public:
  mapping(node_facts facts, pipeline<In> in, shared_const<map_settings> settings,
          counted_ptr<const stage_functions<Calls>> functions)
      : node<Out>(std::move(facts)),
        in_(std::move(in)),
        settings_(std::move(settings)),
        functions_(std::move(functions)),
        measure_(measure_for<Out>(settings_->buffer_bytes(), settings_->name(), "buffer_bytes")) {
    settings_->require_fit<In, Out>(!computes);
  }

  async_generator<Out> open(const open_context& run) const override {
    auto& counters = run.add_stage();
    auto make = [&] {
      auto made = functions_->for_run(stage_run(run, counters));
      require_host_accessible(settings_->name(), made->host_memory());
      return made;
    };
    auto function = begin_with(make, run, counters);
    auto* memory = function->host_memory();
    if (memory) run.at->batch_memory = memory;
    if constexpr (computes)
      if (settings_->is_inline(run.run->options()))
        return open_inline(run, counters, std::move(function));
    auto options = computes ? settings_->computing(*run.run) : settings_->waiting(*run.run);
    if (!options.memory) options.memory = memory;
    options.measure = measure_;
    return open_concurrent<Out>(in_, run, options, function);
  }

 private:
  using function_ptr = counted_ptr<const stage_function<Calls>>;

  async_generator<Out> open_inline(const open_context& run, stage_counters& counters,
                                   function_ptr function) const
    requires computes
  {
    if (function->draws_random) run.depends_on_epoch(settings_->name(), run.pass->seed);
    inline_calls calls(run, counters);
    auto in = in_.open(run);
    return each(counted_ptr(this), std::move(function), std::move(in), run, counters,
                std::move(calls));
  }

  static async_generator<Out> each(counted_ptr<const mapping> self, function_ptr function,
                                   async_generator<In> in, open_context run,
                                   stage_counters& counters, inline_calls calls)
    requires computes
  {
    identify identity;
    stage_random draws(run, self->facts().number());
    auto pool = self->settings_->memory_of(run.run->runtime(), function->host_memory());
    call_memory memory(pool, counters, run.stop);
    auto worker = begin_worker(*function, run, counters);
    kept_name<In> name;
    while (auto item = co_await in.next()) {
      increment(counters.in);
      if (run.run->failures().is_behind()) co_await run.run->failures().caught_up();
      item_random draw(draws, identity(in.origin()));
      if (worker->reserves_memory) {
        auto reserved = co_await reserve(needed_for(*worker, *item));
        memory.reserve(std::move(reserved));
      }
      run.throw_if_stopped(counters);
      name.keep(*item);
      std::optional<Out> out;
      {
        call_memory::entered inside(memory);
        self->call(*worker, *item, draw, out, name, in.origin(), run, counters, calls);
      }
      if (!out) continue;
      release_item(*item);
      count_out(counters, *out);
      co_yield *out;
    }
  }

  // Calls the function for one item. Leaves `out` empty if the item is dropped.
  void call(Calls& worker, In& item, const item_random& draw, std::optional<Out>& out,
            const kept_name<In>& name, const lineage& origin, const open_context& run,
            stage_counters& counters, inline_calls& calls) const
    requires computes
  {
    std::exception_ptr failure;
    hooked_call hooked(*run.run, counters, origin);
    calls.begin(name, origin);
    try {
      if (hooked.has_hooks()) hooked.enter(name.text(), view_of(item));
      worker.call(std::move(item), draw, out);
      hooked.leave(view_of_result(out));
    } catch (...) {
      hooked.end(std::current_exception(), {});
      out.reset();
      failure = failed(out, name, origin, run, counters);
    }
    calls.end(name, origin);
    if (failure) std::rethrow_exception(failure);
  }

  // For a catch block: copies the substitute into `out`, if there is one. Returns the exception
  // that ends the run, or null. If copying the substitute throws, that ends the run.
  std::exception_ptr failed(std::optional<Out>& out, const kept_name<In>& name,
                            const lineage& origin, const open_context& run,
                            stage_counters& counters) const {
    try {
      substitute(out, settings_->substitute());
    } catch (...) {
      return run.failure(counters, {on_error::fail}, name.text(), origin);
    }
    return run.failure(counters, settings_->policy(), name.text(), origin);
  }

  static std::unique_ptr<Calls> begin_worker(const stage_function<Calls>& function,
                                             const open_context& run, stage_counters& counters) {
    try {
      return function.begin();
    } catch (...) {
      std::rethrow_exception(run.failure(counters, {on_error::fail}, {}, {}));
    }
  }

  pipeline<In> in_;
  shared_const<map_settings> settings_;
  counted_ptr<const stage_functions<Calls>> functions_;
  measure_item measure_;
};

template <class In, class F>
auto append_mapping(const pipeline<In>& in, const shared_const<map_settings>& settings,
                    const shared_const<F>& function, std::string kind) {
  using out = typename call_types<F, In>::out;
  using calls = typename call_types<F, In>::calls;
  using outcome = typename call_types<F, In>::outcome;
  constexpr bool drops = !std::same_as<typename outcome::type, out>;
  auto functions = functions_for<In>(function);
  constexpr auto at_a_time = calls_of<function_of_run<F>, In, calls>::at_a_time;
  auto facts = settings->facts(in.last(), kind, {outcome::is_task, drops, at_a_time});
  if (functions->says_memory) facts = std::move(facts).wanting_batches();
  counted_ptr step(
      new mapping<In, out, calls>(std::move(facts), in, settings, std::move(functions)));
  return pipeline<out>(std::move(step));
}

template <class In, class F>
auto attach_map(const pipeline<In>& in, const shared_const<map_settings>& settings,
                const shared_const<F>& function, std::string kind) {
  constexpr bool fits = applicable<called<F>, In>;
  static_assert(fits,
                "lade::map: the function must take the stage's item, by value or const reference, "
                "and be callable as const: not a mutable lambda, not one that takes T&");
  if constexpr (fits) {  // otherwise the compiler reports only the static_assert
    constexpr bool makes_items = !std::is_void_v<typename call_types<F, In>::out>;
    static_assert(makes_items, "lade::map: the function must return the new item");
    if constexpr (makes_items)
      return append_mapping(in, settings, function, std::move(kind));
    else
      return in;
  } else {
    return in;
  }
}

}  // namespace detail

template <class F>
class map_stage {
 public:
  map_stage(F function, const map_options& options)
      : function_(std::move(function)),
        settings_(detail::map_settings(
            options, detail::stage_name<detail::function_of_run<F>>(options.name, "map"),
            detail::default_concurrency<detail::function_of_run<F>>())) {}

  template <class In>
  auto attach(const pipeline<In>& in) const {
    return detail::attach_map(in, settings_, function_, settings_->kind());
  }

 private:
  detail::shared_const<F> function_;
  detail::shared_const<detail::map_settings> settings_;
};

// Applies `function` to every item and yields the results. If the function returns a std::optional,
// an empty one drops the item.
//
// The function takes an item. If it draws random numbers, it also takes a `random`, whose numbers
// depend only on the run's seed and epoch and on the item's position. `function` is anything that
// std::invoke can call, such as a pointer to a member. It may also be a container: the stage then
// looks items up by at(), which throws for an item that is not found, or by operator[] if there is
// no at().
//
// Lifetime: the stage destroys the item after the call, on the thread of the call: for a task, on a
// reactor. So the result must not refer to it. Exception: if the call is inline and the move of the
// item may throw, the item lives until the next one is requested. Items that a stopped run has left
// may be destroyed on any thread of the runtime and its pools, or on the thread that destroys the
// run.
//
// Thread: a plain function runs on the CPU pool, or on the pool of the options. A function that
// returns a task runs on the reactor, where it may only await (read, sleep, ask a server) and must
// not compute. Several threads call the function at a time, through a const reference. For
// functions that do not allow that, see per_worker.hpp.
//
// Errors: if the function throws, the stage may call it again for a copy of the item (`retry`).
// Then the substitute or `on_error` decides. map() throws error(invalid_argument) that names the
// option if an option is invalid.
template <class F>
map_stage<std::decay_t<F>> map(F&& function, const map_options& options = {}) {
  return {std::forward<F>(function), options};
}

}  // namespace lade
