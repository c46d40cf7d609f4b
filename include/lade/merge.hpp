// merge, zip, combine: several pipelines become one.

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
#include <concepts>
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

// Which input supplies the next item of a merge.
enum class merge_order : std::uint8_t {
  turns,     // one item of each input in turn, over and over
  weighted,  // drawn at random, by weight
  arrival,   // any input with an item ready: inputs run concurrently, in no fixed order
};

// When a merge ends.
enum class merge_end : std::uint8_t {
  last,   // when all inputs have ended; an input that has ended is skipped
  first,  // when it is the turn of an input that has ended; by arrival, when an input has ended
};

struct merge_options {
  merge_order order = merge_order::turns;
  merge_end end = merge_end::last;

  // Only with merge_order::weighted: a weight per input, with a sum above 0.
  std::vector<double> weights = {};

  // The same for an epoch. If set, replaces `weights`. Called on the CPU pool when a run opens the
  // merge (see run.hpp).
  std::function<std::vector<double>(std::uint64_t epoch)> weights_of = {};

  // Only with merge_order::weighted: the seed of the draws, which also depend on the epoch of the
  // run.
  std::uint64_t seed = 0;

  // Only with merge_order::arrival: the limit in bytes of the items that wait for the next stage;
  // each input may exceed it by one item. It is in addition to the limit of twice as many items as
  // there are inputs, which share it. See prefetch_options::bytes.
  std::uint64_t buffer_bytes = ~std::uint64_t{0};  // no limit
};

namespace detail {

// Throws error(invalid_argument) if there are weights, a seed or a limit in bytes that the order
// does not use.
void require_options_used(const merge_options& options);

// A copy of the options with the weights of the epoch.
merge_options with_weights_of(std::uint64_t epoch, const merge_options& options);

// Chooses the input of each turn. Throws error(invalid_argument) if the weights are invalid.
class turn_order {
 public:
  turn_order(const merge_options& options, std::size_t inputs, std::uint64_t round);

  // Skips the turns that have been delivered. Call it before the first next().
  void resume(const lineage& delivered) { delivered_ = delivered; }

  bool over() const noexcept { return live_ == 0; }
  std::size_t next();  // an input that has not ended
  void end(std::size_t input);

  // The number of the last turn, from 0.
  std::uint64_t turn() const noexcept { return turns_ - 1; }

  // Text that identifies the order in a state.
  std::string text() const;

 private:
  void skip_delivered();
  void skip(std::uint64_t turns);
  std::size_t next_live() const;

  merge_options options_;
  std::vector<double> weights_;  // 0 for an input that has ended
  std::size_t live_;             // inputs that have not ended
  std::size_t last_;             // input of the last turn
  random draw_;
  std::uint64_t turns_ = 0;
  lineage delivered_;
  std::size_t skipped_ = 0;  // ranges of `delivered_` that have been skipped
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
      auto ended = std::move(inputs[input]);  // destroyed here, with the items it has prefetched
      continue;
    }
    increment(counters.in);
    count_out(counters, *item);
    made.note(order.turn(), inputs[input].origin());
    co_yield *item;
  }
}

// The options of the queue of a merge by arrival.
inline link_options arrivals_of(std::size_t inputs) {
  return link_options::gathering(2 * inputs, inputs);
}

template <class T>
measure_item measure_arrivals(const merge_options& options) {
  return measure_for<T>(options.buffer_bytes, "merge", "buffer_bytes");
}

template <class T>
async_generator<T> merge_arrivals(const std::vector<pipeline<T>>& inputs, const open_context& run,
                                  stage_counters& counters, const merge_options& merged_by) {
  auto options = arrivals_of(inputs.size());
  options.limit(merged_by.buffer_bytes, measure_arrivals<T>(merged_by));
  if (merged_by.end == merge_end::first)
    options.ends_after = std::min<std::size_t>(1, inputs.size());
  options.counts_items = true;
  options.measures_inputs = true;
  options.ring.measures_feeders = true;
  options.ring.measures_depth = true;
  owner<link_base> merged(std::make_shared<link<T>>(run, options));
  merged->count_for(counters);
  run.run->stages().record_workers(counters, {.slots = options.ring.slots, .gathers = true});
  auto before = merged->before(run);
  for (std::size_t i = 0; i < inputs.size(); ++i) merged->start(inputs[i].open(before.branch(i)));
  return deliver_from<T>(std::move(merged));
}

template <class T>
std::vector<async_generator<T>> open_all(const std::vector<pipeline<T>>& inputs,
                                         const open_context& run) {
  std::vector<async_generator<T>> opened;
  for (std::size_t i = 0; i < inputs.size(); ++i) opened.push_back(inputs[i].open(run.branch(i)));
  return opened;
}

// Appends one item of `more` to each tuple, until one input ends.
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

// The facts of the nodes. The size of a merge is known if it delivers all items of all inputs.
node_facts zip_facts(std::vector<node_ptr> inputs);
node_facts merge_facts(std::vector<node_ptr> inputs, const merge_options& options);

// Opens each pipeline as a recorded input of the stage.
template <class... In, std::size_t... I>
std::tuple<async_generator<In>...> open_each(const open_context& run, stage_counters& counters,
                                             const std::shared_ptr<lineage_check>& check,
                                             const std::shared_ptr<custom_inputs>& taken,
                                             std::index_sequence<I...>,
                                             const pipeline<In>&... inputs) {
  return {recorded(inputs.open(run.branch(I)), counters.in, check, taken)...};
}

}  // namespace detail

// Makes one pipeline of several by a coroutine. `coroutine(async_generator<In>...)` returns an
// async_generator of the new items. A run calls it when it opens the stage (see run.hpp), and again
// after a failure that is skipped. The coroutine may take from each input at any time, and may
// return before they have ended. As for `through`, run::state() throws unless the options name a
// lineage_rule.
template <class F, class... In>
auto combine(F coroutine, const through_options& options, const pipeline<In>&... inputs) {
  using out = typename detail::custom_items<F, async_generator<In>...>::type;
  detail::custom_stage custom(detail::stage_name<F>(options.name, "combine"), options);
  return detail::make_pipeline<out>(
      detail::node_facts::behind_all(detail::nodes_of(inputs...), "combine", custom.name())
          .yielding(cardinality::custom)
          .following(options.lineage, custom.name())
          .with(custom.given_policy())
          .pairing(),
      [coroutine = detail::shared_const(std::move(coroutine)), custom,
       inputs...](const detail::open_context& run) {
        auto& counters = run.add_stage(sizeof...(In));
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

// Tuples with one item of each input, until one input ends. The items of a tuple are taken in the
// order of the inputs, and dropped if a later input has ended.
template <class... In>
pipeline<std::tuple<In...>> zip(const pipeline<In>&... inputs) {
  static_assert(sizeof...(In) > 0, "lade::zip: there must be an input");
  return detail::make_pipeline<std::tuple<In...>>(
      detail::zip_facts(detail::nodes_of(inputs...)), [inputs...](const detail::open_context& run) {
        auto& counters = run.add_stage(sizeof...(In));
        auto opened = detail::open_each(run, counters, nullptr, nullptr,
                                        std::index_sequence_for<In...>(), inputs...);
        auto rows = std::apply([](auto&... each) { return detail::zip_opened(std::move(each)...); },
                               opened);
        return detail::counted_out(std::move(rows), counters);
      });
}

// Yields the items of all inputs, in the order of `options`. Except with merge_order::arrival, the
// order is the same in every run of an epoch, and an input is asked for an item only in its turn;
// prefetch lets it work ahead. Throws error(invalid_argument) if the weights do not fit the inputs,
// if the order has no weights or no limit in bytes, or if there is a limit and the bytes of the
// items are unknown. If `weights_of` returns weights that do not fit, the run fails
// with this error.
template <class T>
pipeline<T> merge(std::vector<pipeline<T>> inputs, const merge_options& options = {}) {
  detail::require_options_used(options);
  detail::measure_arrivals<T>(options);
  if (!options.weights_of) detail::turn_order(options, inputs.size(), 0);
  std::vector<detail::node_ptr> nodes;
  for (auto& each : inputs) nodes.emplace_back(each.last());
  auto facts = detail::merge_facts(std::move(nodes), options);
  return detail::make_pipeline<T>(std::move(facts), [inputs = std::move(inputs),
                                                     options](const detail::open_context& run) {
    auto& counters = run.add_stage(inputs.size());
    if (options.order == merge_order::weighted) run.depends_on_epoch("merge");
    if (options.order == merge_order::arrival)
      return detail::merge_arrivals(inputs, run, counters, options);
    auto begin = [&] {
      auto of_epoch = detail::with_weights_of(run.pass->epoch, options);
      return detail::turn_order(of_epoch, inputs.size(), run.round());
    };
    auto order = detail::begin_with(begin, run, counters);
    auto made = run.choosing(order.text());
    return detail::merge_in_turn(detail::open_all(inputs, run), std::move(order), made, counters);
  });
}
template <class T, class... More>
  requires(sizeof...(More) > 0 && !(std::convertible_to<More, merge_options> || ...))
pipeline<T> merge(const pipeline<T>& first, const More&...) {
  static_assert(sizeof...(More) == 0,
                "lade::merge: the inputs must be a list of pipelines with items of the same type, "
                "as in merge<item>({first, second})");
  return first;
}

}  // namespace lade
