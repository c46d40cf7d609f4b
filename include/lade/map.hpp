// map: applies a function to every item.

#pragma once

#include <lade/async_generator.hpp>
#include <lade/buffer_pool.hpp>
#include <lade/detail/concurrent.hpp>
#include <lade/detail/in_place_calls.hpp>
#include <lade/detail/items.hpp>
#include <lade/detail/shared_const.hpp>
#include <lade/per_worker.hpp>
#include <lade/pipeline.hpp>
#include <lade/random.hpp>
#include <lade/thread_pool.hpp>

#include <algorithm>
#include <any>
#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace lade {

struct map_options {
  // How many items the function works on at a time, up to 1,048,576; `automatic` finds out (see
  // autotune.hpp). 0: as many as the CPU pool has threads, or 16 for functions that return a task.
  // A plain function is called by no more threads than the pool has. 1, for a plain function
  // without a buffer: it is called when the next stage asks for an item, on that stage's thread,
  // without a queue.
  unsigned concurrency = 0;

  // How many finished items may wait for the next stage, beyond those that are worked on, up to
  // 1,048,576; as many as `concurrency` if not given.
  std::optional<unsigned> buffer = {};

  item_order order = item_order::input;

  // What becomes of items whose function throws; see failure.hpp. A substitute is an item of what
  // the function gives, which the stage gives instead.
  lade::retry retry = {};
  std::optional<lade::on_error> on_error = {};  // the run's if not given
  std::any substitute = {};
  lade::error_budget error_budget = {};

  // How long one call may take, and one item with all its calls and the pauses between them; 0 and
  // nanoseconds::max() set no limit. What takes longer fails with errc::timed_out. A task is asked
  // to stop then; a plain function cannot be interrupted: its result is dropped when it comes.
  std::chrono::nanoseconds timeout = {};
  std::chrono::nanoseconds deadline = {};

  // Where a plain function is called, if not on the CPU pool of the runtime. May be that of other
  // stages and runs too; must outlive the runs.
  thread_pool* pool = nullptr;

  // What statistics and errors call the stage. If not given: the name of the function object's
  // class, as "read" for lade::io::read; "map" for lambdas, plain functions and pointers, whose
  // names a compiler does not tell.
  std::string_view name = {};
};

namespace detail {

// Throws error(invalid_argument) that names the stage and the option that cannot work.
void require_map(std::string_view stage, const map_options& options);

// Calls function(item), or function(item, random) if it takes a random; looks the item up in what
// is no function but has items of its own.
template <class F, class In>
decltype(auto) apply_to(F& function, In&& item, const random& draw) {
  if constexpr (std::is_invocable_v<F&, In, random>)
    return std::invoke(function, std::forward<In>(item), draw);
  else if constexpr (std::is_invocable_v<F&, In>)
    return std::invoke(function, std::forward<In>(item));
  else if constexpr (requires { function.at(item); })
    return function.at(item);
  else
    return function[item];
}

// Whether a function that takes random numbers draws any: one that has is_random() says so.
template <class F>
bool uses_random(const F& function) {
  if constexpr (requires { function.is_random(); })
    return function.is_random();
  else
    return true;
}

// What one worker of a stage calls: the function that all share, or an instance of its own.
template <class F>
class worker_function {
 public:
  explicit worker_function(const F& shared) noexcept : shared_(shared) {}
  const F& operator*() const noexcept { return shared_; }

 private:
  const F& shared_;
};
template <class Make>
class worker_function<per_worker<Make>> : public per_worker<Make>::lease {
 public:
  explicit worker_function(const per_worker<Make>& functions)
      : per_worker<Make>::lease(functions.borrow()) {}
};

template <class F, class In>
using applied =
    decltype(apply_to(*std::declval<worker_function<F>&>(), std::declval<In>(), random()));

// The item in what a function gives: nothing, if that is an empty optional.
template <class T>
struct item_of {
  using type = T;
};
template <class T>
struct item_of<std::optional<T>> {
  using type = T;
};

// The random numbers of the items of one stage.
class stage_random {
 public:
  stage_random(const opening& run, std::uint64_t stage) noexcept
      : seed_(run.seed), epoch_(run.epoch), stage_(stage) {}
  random operator()(const item_identity& item) const noexcept {
    return random(seed_, epoch_, item.position, stage_, item.part);
  }

 private:
  std::uint64_t seed_;
  std::uint64_t epoch_;
  std::uint64_t stage_;
};

// The work of a concurrent map.
template <class F>
class map_work {
 public:
  map_work(shared_const<F> function, stage_random draws)
      : function_(std::move(function)), draws_(draws) {}

  class worker {
   public:
    explicit worker(const map_work& work) : function_(*work.function_), draws_(work.draws_) {}
    template <class In>
    decltype(auto) operator()(In&& item, const item_identity& identity) const {
      return apply_to(*function_, std::forward<In>(item), draws_(identity));
    }
    template <class In>
      requires tells_memory<std::remove_cvref_t<decltype(*std::declval<worker_function<F>&>())>, In>
    std::size_t memory_needed(const In& item) const {
      return (*function_).memory_needed(item);
    }

   private:
    worker_function<F> function_;
    stage_random draws_;
  };

 private:
  shared_const<F> function_;
  stage_random draws_;
};

}  // namespace detail

template <class F>
class map_stage {
 public:
  map_stage(F function, const map_options& options)
      : function_(std::move(function)),
        options_(options),
        name_(detail::stage_name<F>(options.name, "map")) {
    detail::require_map(name_, options_);
  }

  template <class In>
  auto attach(const pipeline<In>& in) const {
    using result = detail::outcome_of<std::remove_cvref_t<detail::applied<F, In>>>;
    using out = typename detail::item_of<typename result::type>::type;
    static_assert(!std::is_void_v<out>, "lade::map: the function must return the new item");
    require_policy<In, out>();
    if (result::is_task && options_.pool)
      throw error(errc::invalid_argument, name_, "tasks run on the reactor, not on a pool");
    auto length = in.length() + 1;
    return detail::make_pipeline<out>(
        length, [in, length, self = *this](const detail::opening& run) -> async_generator<out> {
          detail::stage_random draws(run, length);
          if (draws_random<In> && detail::uses_random(*self.function_))
            run.depends_on_epoch(self.name_);
          if constexpr (!result::is_task)
            if (self.works_in_place(run.run->options()))
              return self.template inlined<out>(in, run, draws);
          return self.template concurrent<out, result::is_task>(in, run, draws);
        });
  }

 private:
  template <class Out, class In>
  async_generator<Out> inlined(const pipeline<In>& in, const detail::opening& run,
                               detail::stage_random draws) const {
    auto& counters = run.add_stage(name_);
    detail::in_place_calls calls(run, counters);
    return each<Out, In>(in.open(run), *this, draws, run, counters, std::move(calls));
  }

  template <class Out, class In>
  static async_generator<Out> each(async_generator<In> in, map_stage self,
                                   detail::stage_random draws, detail::opening run,
                                   detail::stage_counters& counters, detail::in_place_calls calls) {
    detail::identify identity;
    detail::call_memory memory(run.run->runtime().memory(), counters);
    auto function = self.begin_worker(run, counters);
    detail::kept_name<In> name;
    while (auto item = co_await in.next()) {
      detail::bump(counters.in);
      random draw;
      if constexpr (draws_random<In>) draw = draws(identity(in.origin()));
      if constexpr (tells_memory<std::remove_cvref_t<decltype(*function)>, In>) {
        auto reserved = co_await detail::reserve_for(*function, *item);
        memory.reserve(std::move(reserved));
      }
      name.keep(*item);
      std::optional<Out> out;
      {
        detail::call_memory::entered inside(memory);
        out = self.template result_for<Out>(*item, name, in.origin(), *function, draw, run,
                                            counters, calls);
      }
      if (!out) continue;
      detail::count_out(counters, *out);
      co_yield *out;
    }
  }

  // Nothing for an item that is dropped.
  template <class Out, class In, class Function>
  std::optional<Out> result_for(In& item, const detail::kept_name<In>& name, const lineage& origin,
                                Function& function, const random& draw, const detail::opening& run,
                                detail::stage_counters& counters,
                                detail::in_place_calls& calls) const {
    std::optional<Out> out;
    std::exception_ptr failure;
    detail::hooked_call call(*run.run, counters, item, origin);
    calls.begin(name, origin);
    try {
      detail::assign(out, detail::apply_to(function, std::move(item), draw));
      call.leave(nullptr);
    } catch (...) {
      call.leave(std::current_exception());
      failure = run.failure(counters, policy(), name.text(), origin);
      if (!failure) detail::substitute(out, options_.substitute);
    }
    calls.end(name, origin);
    if (failure) std::rethrow_exception(failure);
    return out;
  }

  detail::worker_function<F> begin_worker(const detail::opening& run,
                                          detail::stage_counters& counters) const {
    try {
      return detail::worker_function<F>(*function_);
    } catch (...) {
      std::rethrow_exception(run.failure(counters, {on_error::fail}, {}, {}));
    }
  }

  template <class Out, bool is_task, class In>
  async_generator<Out> concurrent(const pipeline<In>& in, const detail::opening& run,
                                  detail::stage_random draws) const {
    auto options = is_task ? waiting(*run.run) : computing(*run.run);
    options.order = options_.order;
    options.policy = policy();
    options.substitute = options_.substitute;
    options.limits = limits();
    return detail::open_concurrent<In, Out>(in, run, name_, options,
                                            detail::map_work<F>(function_, draws));
  }

  // How tasks are awaited.
  detail::concurrent_options waiting(const detail::run_state& run) const {
    if (options_.concurrency == automatic) return tuned(std::max(run.options().tune.most, 1u));
    auto concurrency = options_.concurrency ? options_.concurrency : 16;
    return {.slots = concurrency + options_.buffer.value_or(concurrency),
            .workers = concurrency,
            .on_reactor = true};
  }
  detail::concurrent_options tuned(unsigned most) const {
    auto first = std::min(most, 16u);
    auto slots = most + std::max(options_.buffer.value_or(0), 2 * most);
    return {.slots = slots,
            .workers = most,
            .on_reactor = true,
            .tuned_by = detail::tuner({first, options_.buffer.value_or(first)}, most, slots)};
  }

  // How a plain function is called.
  detail::concurrent_options computing(detail::run_state& run) const {
    auto threads = (options_.pool ? *options_.pool : run.runtime().pool()).size();
    auto calls = detail::calls_at_a_time(options_.concurrency, run.options().tune, threads);
    auto buffer = options_.buffer.value_or(calls);
    return {.slots = calls + buffer,
            .workers = std::min(calls, threads),
            .pool = options_.pool,
            .shares_cpus = options_.concurrency == automatic,
            .buffer = buffer};
  }

  template <class In>
  static constexpr bool draws_random =
      std::is_invocable_v<decltype(*std::declval<detail::worker_function<F>&>()), In, random>;

  detail::time_limits limits() const noexcept { return {options_.timeout, options_.deadline}; }

  bool works_in_place(const run_options& run) const noexcept {
    auto attempts = options_.retry.attempts ? options_.retry.attempts : run.retry.attempts;
    return options_.concurrency == 1 && attempts <= 1 && !limits().any() && !options_.pool &&
           !options_.buffer;
  }

  // Throws error(invalid_argument) if the failure options do not fit the items.
  template <class In, class Out>
  void require_policy() const {
    bool fits = !options_.substitute.has_value();
    if constexpr (std::copy_constructible<Out>)
      fits = fits || std::any_cast<Out>(&options_.substitute) != nullptr;
    if (!fits)
      throw error(errc::invalid_argument, name_,
                  "the substitute is of another type than its items");
    if (options_.retry.attempts > 1 && !std::copy_constructible<In>)
      throw error(errc::invalid_argument, name_, "items that cannot be copied cannot be retried");
  }

  detail::failure_policy policy() const {
    return {.finally = options_.on_error,
            .retry = options_.retry,
            .budget = options_.error_budget,
            .substitutes = options_.substitute.has_value()};
  }

  detail::shared_const<F> function_;
  map_options options_;
  std::string name_;
};

// Applies `function` to every item. It takes an item, and a `random` too if it draws random
// numbers (they depend on the run's seed and epoch and on the item's position alone). What it
// returns are the new items; where it returns a std::optional, an empty one drops the item.
//
// A function is whatever std::invoke takes, so also a pointer to a member. A container is a table
// in which the items are looked up: by at(), which throws for an item that is not in it, or by
// operator[] if it has no at().
//
// A plain function runs on the CPU pool, or on the pool of the options. One that returns a task
// runs on the reactor, where it may only await (read, sleep, ask a server), never compute. It is
// called by several threads at a time, through a const reference; see per_worker.hpp for functions
// that cannot be. If it throws, it may be called again for a copy of the item (`retry`); then the
// substitute or `on_error` decides. Throws error(invalid_argument) that names the option for one
// that cannot work.
template <class F>
map_stage<std::decay_t<F>> map(F&& function, const map_options& options = {}) {
  return {std::forward<F>(function), options};
}

}  // namespace lade
