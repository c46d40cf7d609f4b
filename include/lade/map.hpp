// map: applies a function to every item.

#pragma once

#include <lade/async_generator.hpp>
#include <lade/detail/concurrent.hpp>
#include <lade/pipeline.hpp>
#include <lade/random.hpp>

#include <algorithm>
#include <any>
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
  // How many items the function works on at a time. 0: as many as the CPU pool has threads, or 16
  // for functions that return a task. 1, for a plain function: it is called when the next stage
  // asks for an item, on that stage's thread, without a queue.
  unsigned concurrency = 0;

  // How many finished items may wait for the next stage; as many as `concurrency` if not given.
  std::optional<unsigned> buffer = {};

  item_order order = item_order::input;

  // What becomes of items whose function throws; see failure.hpp. A substitute is an item of what
  // the function gives, which the stage gives instead.
  lade::retry retry = {};
  std::optional<lade::on_error> on_error = {};  // the run's if not given
  std::any substitute = {};
  lade::error_budget error_budget = {};

  // What statistics and errors call the stage; the type's name if not given.
  std::string_view name = {};
};

namespace detail {

// Calls function(item), or function(item, random) if it takes a random; looks the item up in what
// is no function but has items of its own.
template <class F, class In>
decltype(auto) apply_to(const F& function, In&& item, const random& draw) {
  if constexpr (std::is_invocable_v<const F&, In, random>)
    return std::invoke(function, std::forward<In>(item), draw);
  else if constexpr (std::is_invocable_v<const F&, In>)
    return std::invoke(function, std::forward<In>(item));
  else if constexpr (requires { function.at(item); })
    return function.at(item);
  else
    return function[item];
}

template <class F, class In>
using applied = decltype(apply_to(std::declval<const F&>(), std::declval<In>(), random()));

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

}  // namespace detail

template <class F>
class map_stage {
 public:
  map_stage(F function, const map_options& options)
      : function_(std::move(function)),
        options_(options),
        name_(detail::stage_name<F>(options.name, "map")) {}

  template <class In>
  auto attach(const pipeline<In>& in) const {
    using result = detail::outcome_of<std::remove_cvref_t<detail::applied<F, In>>>;
    using out = typename detail::item_of<typename result::type>::type;
    static_assert(!std::is_void_v<out>, "lade::map: the function must return the new item");
    require_policy<In, out>();
    auto length = in.length() + 1;
    return detail::make_pipeline<out>(
        length, [in, length, self = *this](const detail::opening& run) -> async_generator<out> {
          detail::stage_random draws(run, length);
          if constexpr (!result::is_task)
            if (self.options_.concurrency == 1 && self.options_.retry.attempts == 1)
              return self.template inlined<out>(in, run, draws);
          return self.template concurrent<out, result::is_task>(in, run, draws);
        });
  }

 private:
  template <class Out, class In>
  async_generator<Out> inlined(const pipeline<In>& in, const detail::opening& run,
                               detail::stage_random draws) const {
    auto& counters = run.add_stage(name_);
    return each<Out, In>(in.open(run), *this, draws, run, counters);
  }

  template <class Out, class In>
  static async_generator<Out> each(async_generator<In> in, map_stage self,
                                   detail::stage_random draws, detail::opening run,
                                   detail::stage_counters& counters) {
    auto policy = self.policy();
    detail::identify identity;
    while (auto item = co_await in.next()) {
      detail::bump(counters.in);
      std::optional<Out> out;
      std::string name;
      auto draw = draws(identity(in.origin()));
      try {
        name = detail::name_of(*item);
        detail::assign(out, detail::apply_to(self.function_, std::move(*item), draw));
      } catch (...) {
        auto failure = run.failure(counters, policy, std::move(name), in.origin());
        if (failure) std::rethrow_exception(failure);
        detail::substitute(out, self.options_.substitute);
      }
      if (!out) continue;
      detail::bump(counters.out);
      co_yield *out;
    }
  }

  template <class Out, bool is_task, class In>
  async_generator<Out> concurrent(const pipeline<In>& in, const detail::opening& run,
                                  detail::stage_random draws) const {
    auto threads = run.run->runtime().pool().size();
    auto concurrency = options_.concurrency ? options_.concurrency : is_task ? 16 : threads;
    detail::concurrent_options options{
        .slots = concurrency + options_.buffer.value_or(concurrency),
        .workers = is_task ? concurrency : std::min(concurrency, threads),
        .on_reactor = is_task,
        .order = options_.order,
        .policy = policy(),
        .substitute = options_.substitute};
    return detail::open_concurrent<In, Out>(
        in, run, name_, options,
        [function = function_, draws](In&& item, const detail::item_identity& identity) {
          return detail::apply_to(function, std::move(item), draws(identity));
        });
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

  F function_;
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
// A plain function runs on the CPU pool. One that returns a task runs on the reactor, where it may
// only await (read, sleep, ask a server), never compute. It is called by several threads at a
// time, through a const reference.
// If it throws, it may be called again for a copy of the item (`retry`); then the substitute or
// `on_error` decides.
template <class F>
map_stage<std::decay_t<F>> map(F&& function, const map_options& options = {}) {
  return {std::forward<F>(function), options};
}

}  // namespace lade
