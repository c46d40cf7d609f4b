// merge, zip, combine: several pipelines as one.

#pragma once

#include <lade/async_generator.hpp>
#include <lade/detail/coroutines/owner.hpp>
#include <lade/detail/pipeline/items.hpp>
#include <lade/detail/pipeline/run_state.hpp>
#include <lade/detail/stages/link.hpp>
#include <lade/error.hpp>
#include <lade/pipeline.hpp>
#include <lade/random.hpp>
#include <lade/through.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace lade {

// Whose turn it is among the inputs of a merge.
enum class merge_order : std::uint8_t {
  turns,     // one item of each, over and over
  weighted,  // drawn at random, by weight
  arrival,   // whose item is ready: inputs work beside each other, and no order is kept
};

// When a merge ends.
enum class merge_end : std::uint8_t {
  last,   // with the input that ends last; the others are left out when they have ended
  first,  // with the input that ends first, when it is that one's turn
};

struct merge_options {
  merge_order order = merge_order::turns;
  merge_end end = merge_end::last;
  std::vector<double> weights = {};  // one for each input, if weighted; together more than 0

  // The same, for each epoch; instead of the weights above, if given. Called when a run begins.
  std::function<std::vector<double>(std::uint64_t epoch)> weights_of = {};

  std::uint64_t seed = 0;  // of the draws, which depend on the run's epoch too

  // With the weights of an epoch.
  merge_options in(std::uint64_t epoch) const;
};

namespace detail {

// Whose turn it is. Throws error(invalid_argument) for weights that cannot work.
class turn_order {
 public:
  turn_order(const merge_options& options, std::size_t inputs, std::uint64_t round);

  // Leaves out the turns that have been delivered. Before the first.
  void resume(const lineage& delivered) { delivered_ = delivered; }

  bool over() const noexcept { return live_ == 0; }
  std::size_t next();  // an input that has not ended
  void end(std::size_t input);

  // The number of the last turn.
  std::uint64_t turn() const noexcept { return turns_ - 1; }

  // In words by which states tell ways of choosing apart.
  std::string text() const;

 private:
  void skip_delivered();
  void skip(std::uint64_t turns);
  std::size_t next_live() const;

  merge_options options_;
  std::vector<double> weights_;  // 0 for those that have ended
  std::size_t live_;
  std::size_t last_;
  random draw_;
  std::uint64_t turns_ = 0;
  lineage delivered_;
  std::size_t skipped_ = 0;  // ranges of these
};

template <class T>
async_generator<T> merge_in_turn(std::vector<async_generator<T>> inputs, turn_order order,
                                 choice_log made, stage_counters& counters) {
  order.resume(made.before().delivered);
  while (!order.over()) {
    auto input = order.next();
    auto* item = co_await inputs[input].next();
    if (!item) {
      order.end(input);
      auto ended = std::move(inputs[input]);  // with what it has worked ahead
      continue;
    }
    bump(counters.in);
    count_out(counters, *item);
    made.note(order.turn(), inputs[input].origin());
    co_yield *item;
  }
}

template <class T>
async_generator<T> merge_arrivals(const std::vector<pipeline<T>>& inputs, const open_context& run,
                                  stage_counters& counters, merge_end end) {
  auto ends_after =
      end == merge_end::first ? std::min<std::size_t>(1, inputs.size()) : inputs.size();
  owner merged(std::make_shared<link<T>>(
      run, link_options{.slots = 2 * inputs.size(), .ends_after = ends_after}));
  merged->count_for(counters);
  auto before = merged->before();
  for (std::size_t i = 0; i < inputs.size(); ++i)
    merged->start(counted_in(inputs[i].open(before.branch(i)), counters.in));
  return counted_out(link<T>::deliver(std::move(merged)), counters);
}

template <class T>
std::vector<async_generator<T>> open_all(const std::vector<pipeline<T>>& inputs,
                                         const open_context& run) {
  std::vector<async_generator<T>> opened;
  for (std::size_t i = 0; i < inputs.size(); ++i) opened.push_back(inputs[i].open(run.branch(i)));
  return opened;
}

// Items side by side, until one input ends.
template <class... A, class B>
async_generator<std::tuple<A..., B>> append_to_tuples(async_generator<std::tuple<A...>> in,
                                                      async_generator<B> more) {
  while (auto* front = co_await in.next()) {
    auto* back = co_await more.next();
    if (!back) co_return;
    auto both = std::tuple_cat(std::move(*front), std::tuple<B>(std::move(*back)));
    co_yield both;
  }
}

template <class T>
async_generator<std::tuple<T>> as_tuples(async_generator<T> in) {
  while (auto* item = co_await in.next()) {
    std::tuple<T> alone(std::move(*item));
    co_yield alone;
  }
}

template <class... T>
async_generator<std::tuple<T...>> zip_rest(async_generator<std::tuple<T...>> all) {
  return all;
}
template <class... T, class Next, class... More>
auto zip_rest(async_generator<std::tuple<T...>> all, async_generator<Next> next,
              async_generator<More>... more) {
  return zip_rest(append_to_tuples(std::move(all), std::move(next)), std::move(more)...);
}

template <class First, class... More>
auto zip_opened(async_generator<First> first, async_generator<More>... more) {
  return zip_rest(as_tuples(std::move(first)), std::move(more)...);
}

// What nodes with these inputs say. Of a merge, items are known in number if all inputs end.
node_facts zip_facts(std::vector<node_ptr> inputs);
node_facts merge_facts(std::vector<node_ptr> inputs, const merge_options& options);

// The live generators of several pipelines, for the stage that takes their items.
template <class... In, std::size_t... I>
std::tuple<async_generator<In>...> open_each(const open_context& run, stage_counters& counters,
                                             const std::shared_ptr<lineage_check>& check,
                                             const std::shared_ptr<custom_inputs>& taken,
                                             std::index_sequence<I...>,
                                             const pipeline<In>&... inputs) {
  return {recorded(inputs.open(run.branch(I)), counters.in, check, taken)...};
}

}  // namespace detail

// What a coroutine makes of several pipelines: `coroutine(async_generator<In>...)` returns an
// async_generator of the new items. Called once for every run. It takes from each input when it
// wants to, and may leave before they have ended. As for `through`, there is no state unless the
// options say which lineage_rule the coroutine follows.
template <class F, class... In>
auto combine(F coroutine, const through_options& options, const pipeline<In>&... inputs) {
  using out = typename detail::custom_items<F, async_generator<In>...>::type;
  detail::custom_stage custom(detail::stage_name<F>(options.name, "combine"), options);
  return detail::make_pipeline<out>(
      detail::node_facts::behind_all(detail::nodes_of(inputs...), "combine", custom.name())
          .yielding(cardinality::custom)
          .following(options.lineage, custom.name())
          .pairing(),
      [coroutine = detail::shared_const(std::move(coroutine)), custom,
       inputs...](const detail::open_context& run) {
        auto& counters = run.add_stage(custom.name(), sizeof...(In));
        auto check = custom.check();
        auto taken = custom.inputs(sizeof...(In));
        auto opened = detail::open_each(run, counters, check, taken,
                                        std::index_sequence_for<In...>(), inputs...);
        auto call = [coroutine](async_generator<In>... each) {
          return std::invoke(*coroutine, std::move(each)...);
        };
        auto open = [&](auto&... each) {
          return detail::open_custom<out>(custom, run, counters, std::move(call), std::move(check),
                                          std::move(taken), std::move(each)...);
        };
        return std::apply(open, opened);
      });
}
template <class F, class... In>
auto combine(F coroutine, const pipeline<In>&... inputs) {
  return combine(std::move(coroutine), through_options(), inputs...);
}

// Tuples of one item of each input, until one of them ends.
template <class... In>
pipeline<std::tuple<In...>> zip(const pipeline<In>&... inputs) {
  return detail::make_pipeline<std::tuple<In...>>(
      detail::zip_facts(detail::nodes_of(inputs...)), [inputs...](const detail::open_context& run) {
        auto& counters = run.add_stage("zip", sizeof...(In));
        auto opened = detail::open_each(run, counters, nullptr, nullptr,
                                        std::index_sequence_for<In...>(), inputs...);
        auto rows = std::apply([](auto&... each) { return detail::zip_opened(std::move(each)...); },
                               opened);
        return detail::counted_out(std::move(rows), counters);
      });
}

// The items of all inputs, in the order of `options`. Without `arrival` the order is the same in
// every run, and an input is asked for an item only when it is its turn; prefetch lets it work
// ahead. Throws error(invalid_argument) for weights that do not fit the inputs; so does a run for
// those of its epoch.
template <class T>
pipeline<T> merge(std::vector<pipeline<T>> inputs, const merge_options& options = {}) {
  if (!options.weights_of) detail::turn_order(options, inputs.size(), 0);
  std::vector<detail::node_ptr> nodes;
  for (auto& each : inputs) nodes.emplace_back(each.last());
  auto facts = detail::merge_facts(std::move(nodes), options);
  return detail::make_pipeline<T>(std::move(facts), [inputs = std::move(inputs),
                                                     options](const detail::open_context& run) {
    auto& counters = run.add_stage("merge", inputs.size());
    if (options.order == merge_order::weighted) run.depends_on_epoch("merge");
    if (options.order == merge_order::arrival)
      return detail::merge_arrivals(inputs, run, counters, options.end);
    auto begin = [&] {
      return detail::turn_order(options.in(run.pass->epoch), inputs.size(), run.round());
    };
    auto order = detail::begin_with(begin, run, counters);
    auto made = run.progress().choosing(order.text());
    return detail::merge_in_turn(detail::open_all(inputs, run), std::move(order), made, counters);
  });
}

}  // namespace lade
