// through: a custom stage.

#pragma once

#include <lade/async_generator.hpp>
#include <lade/detail/common/shared_const.hpp>
#include <lade/detail/pipeline/items.hpp>
#include <lade/detail/pipeline/lineage_check.hpp>
#include <lade/detail/pipeline/run_state.hpp>
#include <lade/failure.hpp>
#include <lade/lineage_rule.hpp>
#include <lade/pipeline.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

namespace lade {

struct through_options {
  std::string_view name = {};  // in statistics and errors

  // The run fails at the first item that is seen to break the rule, and at the end of the stage if
  // items that it took are missing.
  lineage_rule lineage = lineage_rule::unspecified;

  // What happens if the coroutine throws, whatever run_options::on_error says. `fail`: the run
  // ends. `skip`: the items that it has taken since the item it yielded last are dropped, as one
  // failure, and the coroutine is called anew for the items behind them. The run ends nevertheless
  // if an input has failed, and if the coroutine throws before it has taken an item. A coroutine
  // that throws at the end of its inputs is not called again. `skip` is refused with
  // lineage_rule::carried: items that the coroutine holds would be lost.
  lade::on_error on_error = lade::on_error::fail;
  lade::error_budget error_budget = {};
};

namespace detail {

// Passes items on and counts them, where several threads may add to the same counter.
template <class T>
async_generator<T> counted_in(async_generator<T> items, std::atomic<std::uint64_t>& counter) {
  while (auto* item = co_await items.next()) {
    counter.fetch_add(1, std::memory_order_relaxed);
    co_yield *item;
  }
}

// The same of what a stage gives.
template <class T>
async_generator<T> counted_out(async_generator<T> items, stage_counters& counters) {
  while (auto* item = co_await items.next()) {
    count_out(counters, *item);
    co_yield *item;
  }
}

// What a custom stage whose failures may be skipped has taken of its inputs. Any thread.
class custom_inputs {
 public:
  explicit custom_inputs(std::size_t inputs) noexcept : left_(inputs) {}

  // The coroutine is called, again.
  void begin();

  void take(std::string name);
  void end();   // an input has
  void fail();  // an input has

  // Whether the coroutine may be called for what is left; and whether anything can be.
  bool may_skip() const;
  bool is_over() const;

  // The name of the item that was taken last.
  std::string last() const;

 private:
  mutable std::mutex mutex_;  // guards what follows
  std::size_t left_;
  bool failed_ = false;
  bool took_ = false;  // since it was called
  std::string last_;
};

// The input of a custom stage: counts its items, and records their lineages if there is a check,
// and their names if failures are skipped.
template <class T>
async_generator<T> recorded(async_generator<T> items, std::atomic<std::uint64_t>& counter,
                            std::shared_ptr<lineage_check> check,
                            std::shared_ptr<custom_inputs> inputs = nullptr) {
  try {
    while (auto* item = co_await items.next()) {
      counter.fetch_add(1, std::memory_order_relaxed);
      if (check) check->take(items.origin());
      if (inputs) inputs->take(name_of(*item));
      co_yield *item;
    }
  } catch (...) {
    if (inputs) inputs->fail();
    throw;
  }
  if (inputs) inputs->end();
}

// The items of a generator that belongs to others.
template <class T>
async_generator<T> items_of(std::shared_ptr<async_generator<T>> owner) {
  while (auto* item = co_await owner->next()) co_yield *item;
}

// Passes a stage's items on, counts them, and names the stage in what it throws.
template <class T>
async_generator<T> observe(async_generator<T> stage, open_context run, stage_counters& counters) {
  try {
    while (auto item = co_await stage.next()) {
      count_out(counters, *item);
      co_yield *item;
    }
  } catch (...) {
    std::rethrow_exception(run.failure(counters, {on_error::fail}, {}, {}));
  }
}

template <class T>
constexpr bool is_async_generator = false;
template <class T>
constexpr bool is_async_generator<async_generator<T>> = true;

// The items of a user's coroutine that is called with Args.
template <class F, class... Args>
struct custom_items {
  static_assert(std::is_invocable_v<const F&, Args...>,
                "lade: a custom stage must take an async_generator of each input, and its "
                "arguments, by value or const reference, and be callable as const");
  using made = std::invoke_result_t<const F&, Args...>;
  static_assert(is_async_generator<made>,
                "lade: a custom stage must return an async_generator of the new items");
  using type = typename made::value_type;
};

// A stage that is the user's coroutine: its name, the rule that it follows, and what happens if it
// throws.
class custom_stage {
 public:
  // Throws error(invalid_argument) for options that cannot work.
  custom_stage(std::string name, const through_options& options);

  const std::string& name() const noexcept { return name_; }
  lineage_rule rule() const noexcept { return rule_; }
  bool skips() const noexcept { return policy_.finally == on_error::skip; }

  // For one run; null if the stage follows no rule, or none of its failures is skipped.
  std::shared_ptr<lineage_check> check() const;
  std::shared_ptr<custom_inputs> inputs(std::size_t count) const;

  // For the catch block of a coroutine that has taken items of positions `lost` and not yielded
  // them: what ends the run, or null if they are skipped. `inputs` may be null.
  std::exception_ptr failed(const open_context& run, stage_counters& counters,
                            const custom_inputs* inputs, const lineage& lost) const;

 private:
  std::string name_;
  lineage_rule rule_;
  failure_policy policy_;
};

// A custom stage in one run.
template <class T>
struct custom_call {
  async_generator<T> items;                             // of the coroutine
  std::shared_ptr<lineage_check> check;                 // null if there is none
  std::shared_ptr<custom_inputs> inputs;                // null if no failure is skipped
  std::function<async_generator<T>()> again = nullptr;  // calls the coroutine for what is left
};

// What a custom stage yields: checks the lineages if there is a check, tells items apart that it
// makes of the same, counts them, and calls the coroutine again where failures are skipped.
template <class T>
async_generator<T> observe_custom(custom_call<T> stage, custom_stage custom, open_context run,
                                  stage_counters& counters) {
  distinct_lineage origins;
  while (true) {
    T* item = nullptr;
    bool has_failed = false;
    std::exception_ptr failure;
    lineage lost;
    try {
      item = co_await stage.items.next().apart();
    } catch (...) {
      has_failed = true;
      lost = stage.items.unyielded();
      failure = custom.failed(run, counters, stage.inputs.get(), lost);
    }
    if (failure) std::rethrow_exception(failure);
    if (stage.check) {
      auto follow = [&] {
        if (item)
          stage.check->give(stage.items.origin());
        else if (!has_failed)
          stage.check->end(stage.items.unyielded());
        else if (!lost.empty())
          stage.check->give(lost);
        return true;
      };
      begin_with(follow, run, counters);
    }
    if (has_failed) {
      co_await consume(lost);
      if (stage.inputs->is_over()) co_return;
      stage.items = stage.again();
      continue;
    }
    if (!item) co_return;
    count_out(counters, *item);
    with_lineage<T> yielded{origins.of(stage.items.origin()), *item};
    co_yield yielded;
  }
}

// Opens a custom stage: `call(inputs...)` calls the coroutine with the recorded inputs.
template <class Out, class Call, class... In>
async_generator<Out> open_custom(const custom_stage& custom, const open_context& run,
                                 stage_counters& counters, Call call,
                                 std::shared_ptr<lineage_check> check,
                                 std::shared_ptr<custom_inputs> inputs,
                                 async_generator<In>... recorded) {
  if (!inputs) {
    auto first = [&] { return call(std::move(recorded)...); };
    custom_call<Out> stage{begin_with(first, run, counters), std::move(check), nullptr};
    return observe_custom<Out>(std::move(stage), custom, run, counters);
  }
  auto kept = std::make_tuple(std::make_shared<async_generator<In>>(std::move(recorded))...);
  auto again = [call, inputs, kept, run, &counters] {
    inputs->begin();
    auto next = [&] {
      return std::apply([&](const auto&... each) { return call(items_of(each)...); }, kept);
    };
    return begin_with(next, run, counters);
  };
  custom_call<Out> stage{again(), std::move(check), std::move(inputs), again};
  return observe_custom<Out>(std::move(stage), custom, run, counters);
}

}  // namespace detail

template <class F, class... Args>
class through_stage {
 public:
  through_stage(F stage, const through_options& options, std::tuple<Args...> arguments)
      : stage_(std::move(stage)),
        custom_(detail::stage_name<F>(options.name, "through"), options),
        arguments_(std::move(arguments)) {}

  template <class In>
  auto attach(const pipeline<In>& in) const {
    using out = typename detail::custom_items<F, async_generator<In>, const Args&...>::type;
    return detail::make_pipeline<out>(
        detail::node_facts::behind(in.last(), "through", custom_.name())
            .yielding(cardinality::custom)
            .following(custom_.rule(), custom_.name()),
        [in, self = *this](const detail::open_context& run) {
          auto& counters = run.add_stage(self.custom_.name());
          auto check = self.custom_.check();
          auto inputs = self.custom_.inputs(1);
          auto items = detail::recorded(in.open(run), counters.in, check, inputs);
          auto call = [stage = self.stage_,
                       arguments = self.arguments_](async_generator<In> input) {
            auto with_input = [&](const Args&... each) {
              return std::invoke(*stage, std::move(input), each...);
            };
            return std::apply(with_input, *arguments);
          };
          return detail::open_custom<out>(self.custom_, run, counters, std::move(call),
                                          std::move(check), std::move(inputs), std::move(items));
        });
  }

 private:
  detail::shared_const<F> stage_;
  detail::custom_stage custom_;
  detail::shared_const<std::tuple<Args...>> arguments_;
};

// A stage that is a coroutine over a generator: `stage(async_generator<In>, arguments...)` returns
// an async_generator of the new items. Called once for every run, with copies of the arguments:
//
//   auto large = lade::through(at_least, {.lineage = lade::lineage_rule::consumed}, 64);
//
// A run with a stage that does not say which lineage_rule it follows has no state. Throws
// error(invalid_argument) that names the option for one that cannot work.
template <class F, class... Args>
through_stage<std::decay_t<F>, std::decay_t<Args>...> through(F&& stage,
                                                              const through_options& options = {},
                                                              Args&&... arguments) {
  return {std::forward<F>(stage), options, {std::forward<Args>(arguments)...}};
}

}  // namespace lade
