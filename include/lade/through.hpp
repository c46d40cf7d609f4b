// through: a custom stage.

#pragma once

#include <lade/async_generator.hpp>
#include <lade/detail/items.hpp>
#include <lade/detail/lineage_check.hpp>
#include <lade/detail/run_state.hpp>
#include <lade/detail/shared_const.hpp>
#include <lade/pipeline.hpp>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

namespace lade {

// Which items of its input a custom stage makes each of its items of. A run that goes on from a
// state calls the stage anew, for the items whose positions have not been delivered; it is exact
// only if the stage then yields what it would have yielded without the interruption. So whichever
// rule it follows, what it yields must depend on these items alone: not on how many came before
// them, nor on whose turn it is, nor on what it remembers of items whose lineage it has yielded.
enum class lineage_rule : std::uint8_t {
  unspecified,  // run.state() is refused
  consumed,     // all items it took since it yielded the item before: filters, joins
  carried,      // those whose lineage it yields with it (held<T>): shuffles, sorters, re-batchers
};

struct through_options {
  std::string_view name = {};  // in statistics and errors

  // The run fails at the first item that is seen to break the rule, and at the end of the stage if
  // items that it took are missing.
  lineage_rule lineage = lineage_rule::unspecified;
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

// The input of a custom stage: counts its items, and records their lineages if there is a check.
template <class T>
async_generator<T> recorded(async_generator<T> items, std::atomic<std::uint64_t>& counter,
                            std::shared_ptr<lineage_check> check) {
  while (auto* item = co_await items.next()) {
    counter.fetch_add(1, std::memory_order_relaxed);
    if (check) check->take(items.origin());
    co_yield *item;
  }
}

// Passes a stage's items on, counts them, and names the stage in what it throws.
template <class T>
async_generator<T> observe(async_generator<T> stage, opening run, stage_counters& counters) {
  try {
    while (auto item = co_await stage.next()) {
      count_out(counters, *item);
      co_yield *item;
    }
  } catch (...) {
    std::rethrow_exception(run.failure(counters, {on_error::fail}, {}, {}));
  }
}

// The same for a custom stage: checks the lineages if there is a check, and tells items apart that
// it makes of the same.
template <class T>
async_generator<T> observe_custom(async_generator<T> stage, opening run, stage_counters& counters,
                                  std::shared_ptr<lineage_check> check) {
  try {
    distinct_lineage origins;
    while (auto item = co_await stage.next().apart()) {
      if (check) check->give(stage.origin());
      count_out(counters, *item);
      with_lineage<T> yielded{origins.of(stage.origin()), *item};
      co_yield yielded;
    }
    if (check) check->end(stage.unyielded());
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

// A stage that is the user's coroutine: its name, and the rule that it follows.
class custom_stage {
 public:
  custom_stage(std::string name, lineage_rule rule) : name_(std::move(name)), rule_(rule) {}

  const std::string& name() const noexcept { return name_; }

  // What the stages before it are opened with. Refuses a state if the stage follows no rule.
  opening before(const opening& run) const;

  // For one run; null if the stage follows no rule.
  std::shared_ptr<lineage_check> check() const;

 private:
  std::string name_;
  lineage_rule rule_;
};

}  // namespace detail

template <class F, class... Args>
class through_stage {
 public:
  through_stage(F stage, const through_options& options, std::tuple<Args...> arguments)
      : stage_(std::move(stage)),
        custom_(detail::stage_name<F>(options.name, "through"), options.lineage),
        arguments_(std::move(arguments)) {}

  template <class In>
  auto attach(const pipeline<In>& in) const {
    using out = typename detail::custom_items<F, async_generator<In>, const Args&...>::type;
    return detail::make_pipeline<out>(
        detail::node_facts::behind(in.last(), "through", custom_.name())
            .yielding(cardinality::custom),
        [in, self = *this](const detail::opening& run) {
          auto& counters = run.add_stage(self.custom_.name());
          auto check = self.custom_.check();
          auto items = detail::recorded(in.open(self.custom_.before(run)), counters.in, check);
          auto call = [&](const Args&... each) {
            return std::invoke(*self.stage_, std::move(items), each...);
          };
          auto opened =
              detail::begin_with([&] { return std::apply(call, *self.arguments_); }, run, counters);
          return detail::observe_custom<out>(std::move(opened), run, counters, std::move(check));
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
// A run with a stage that does not say which lineage_rule it follows has no state.
template <class F, class... Args>
through_stage<std::decay_t<F>, std::decay_t<Args>...> through(F&& stage,
                                                              const through_options& options = {},
                                                              Args&&... arguments) {
  return {std::forward<F>(stage), options, {std::forward<Args>(arguments)...}};
}

}  // namespace lade
