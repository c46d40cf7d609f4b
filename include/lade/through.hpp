// through: a custom stage, which is a coroutine of the program.

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
  std::string_view name = {};  // stage name in statistics and errors

  // How the stage makes output items from input items; see lineage_rule.hpp. The run fails at the
  // first item that is seen to break the rule. It also fails at the end of the stage if the lineage
  // of an item that it took is missing.
  lineage_rule lineage = lineage_rule::unspecified;

  // Policy if the coroutine throws; run_options::on_error does not apply.
  // - `fail`: the run ends.
  // - `skip`: the items that the coroutine took since its last yield are dropped, as one failure.
  //   The coroutine is then called again for the remaining items. The run still ends if an input
  //   has failed, or if the coroutine throws before it has taken an item. A coroutine that throws
  //   at the end of its inputs is not called again.
  //
  // `skip` is refused with lineage_rule::carried: items that the coroutine holds would be lost.
  lade::on_error on_error = lade::on_error::fail;
  lade::error_budget error_budget = {};
};

namespace detail {

// Passes items on and counts them in `counter`. Several threads may add to the same counter.
template <class T>
async_generator<T> counted_in(async_generator<T> items, std::atomic<std::uint64_t>& counter) {
  while (auto* item = co_await items.next()) {
    counter.fetch_add(1, std::memory_order_relaxed);
    co_yield *item;
  }
}

// The same for the items that a stage yields.
template <class T>
async_generator<T> counted_out(async_generator<T> items, stage_counters& counters) {
  while (auto* item = co_await items.next()) {
    count_out(counters, *item);
    co_yield *item;
  }
}

// The items that a custom stage with on_error::skip has taken from its inputs. Any thread.
class custom_inputs {
 public:
  explicit custom_inputs(std::size_t inputs) noexcept : left_(inputs) {}

  // Call it before every call of the coroutine, also before the first.
  void begin();

  void take(std::string name, const lineage& origin);
  void yielded();  // the coroutine has yielded an item, made of all that was taken before
  void end();      // an input has ended
  void fail();     // an input has failed

  // may_skip: the current call has taken an item, and no input has failed. is_over: all inputs have
  // ended.
  bool may_skip() const;
  bool is_over() const;

  // The name of the item taken last, and the lineage of all that was taken since the last item was
  // yielded.
  std::string last() const;
  lineage since_last() const;

 private:
  mutable std::mutex mutex_;  // guards the members below
  std::size_t left_;          // inputs that have not ended
  bool failed_ = false;
  bool took_ = false;  // whether the current call has taken an item
  std::string last_;
  lineage since_last_;
};

// An input of a custom stage. Counts its items in `counter`, records their lineages in `check` and
// their names in `inputs`; both may be null.
template <class T>
async_generator<T> recorded(async_generator<T> items, std::atomic<std::uint64_t>& counter,
                            std::shared_ptr<lineage_check> check,
                            std::shared_ptr<custom_inputs> inputs = nullptr) {
  try {
    while (auto* item = co_await items.next()) {
      counter.fetch_add(1, std::memory_order_relaxed);
      if (check) check->take(items.origin());
      if (inputs) inputs->take(name_of(*item), items.origin());
      co_yield *item;
    }
  } catch (...) {
    if (inputs) inputs->fail();
    throw;
  }
  if (inputs) inputs->end();
}

// The items of a shared generator, so that another call of the coroutine can continue it.
template <class T>
async_generator<T> items_of(std::shared_ptr<async_generator<T>> owner) {
  while (auto* item = co_await owner->next()) co_yield *item;
}

// Passes the items of a stage on and counts them. Exceptions are rethrown with the stage's name.
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

// The item type of a user's coroutine that is called with Args.
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

// Shared by all runs of a custom stage: its name, its lineage rule and its failure policy.
class custom_stage {
 public:
  // Throws error(invalid_argument) if an option is invalid.
  custom_stage(std::string name, const through_options& options);

  const std::string& name() const noexcept { return name_; }
  lineage_rule rule() const noexcept { return rule_; }
  failure_policy given_policy() const { return skips() ? policy_ : failure_policy(); }
  bool skips() const noexcept { return policy_.finally == on_error::skip; }

  // Objects for one run. check(): null without a lineage rule. inputs(): null unless failures are
  // skipped.
  std::shared_ptr<lineage_check> check() const;
  std::shared_ptr<custom_inputs> inputs(std::size_t count) const;

  // Call it in the catch block around a coroutine that took items of positions `lost` and did not
  // yield them. Returns the exception that ends the run, or null if the items are skipped. `inputs`
  // may be null.
  std::exception_ptr failed(const open_context& run, stage_counters& counters,
                            const custom_inputs* inputs, const lineage& lost) const;

 private:
  std::string name_;
  lineage_rule rule_;
  failure_policy policy_;
};

// The coroutine of a custom stage in one run.
template <class T>
struct custom_call {
  async_generator<T> items;                             // the items that the coroutine yields
  std::shared_ptr<lineage_check> check;                 // null without a lineage rule
  std::shared_ptr<custom_inputs> inputs;                // null unless failures are skipped
  std::function<async_generator<T>()> again = nullptr;  // calls the coroutine for the rest
};

// The items that a custom stage yields. Checks their lineages if there is a check, numbers items
// made from the same input, and counts all items. Calls the coroutine again after a skipped
// failure.
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
      if (stage.inputs) lost = stage.inputs->since_last();
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
      if (run.run->failures().is_behind()) co_await run.run->failures().caught_up();
      stage.inputs->yielded();
      co_await consume(lost);
      if (stage.inputs->is_over()) co_return;
      stage.items = stage.again();
      continue;
    }
    if (!item) co_return;
    if (stage.inputs) stage.inputs->yielded();
    count_out(counters, *item);
    with_lineage<T> yielded{origins.of(stage.items.origin()), *item};
    co_yield yielded;
  }
}

// Opens a custom stage. `call(inputs...)` calls the coroutine with the recorded inputs.
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
            .following(custom_.rule(), custom_.name())
            .with(custom_.given_policy()),
        [in, self = *this](const detail::open_context& run) {
          auto& counters = run.add_stage();
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

// A custom stage: `stage(async_generator<In>, arguments...)` is a coroutine that returns an
// async_generator of new items. A run calls it when it opens the stage (see run.hpp), and again
// after a failure that is skipped:
//
//   auto large = lade::through(at_least, {.lineage = lade::lineage_rule::consumed}, 64);
//
// Lifetime: the pipeline owns copies of the arguments and passes const references to them, which
// outlive the coroutine. Runs at the same time share them.
//
// Thread: the CPU pool, on one thread at a time.
//
// Without a lineage_rule, run::state() throws, since the run has no exact state. Throws
// error(invalid_argument) naming the option if an option is invalid.
template <class F, class... Args>
through_stage<std::decay_t<F>, std::decay_t<Args>...> through(F&& stage,
                                                              const through_options& options = {},
                                                              Args&&... arguments) {
  return {std::forward<F>(stage), options, {std::forward<Args>(arguments)...}};
}

}  // namespace lade
