// The router and the node of a route; the router also of a route_batches.

#pragma once

#include <lade/async_generator.hpp>
#include <lade/detail/common/counted.hpp>
#include <lade/detail/common/fatal.hpp>
#include <lade/detail/common/shared_const.hpp>
#include <lade/detail/coroutines/owner.hpp>
#include <lade/detail/observability/stage_counters.hpp>
#include <lade/detail/pipeline/items.hpp>
#include <lade/detail/pipeline/run_state.hpp>
#include <lade/detail/stages/calls.hpp>
#include <lade/detail/stages/link.hpp>
#include <lade/detail/stages/split.hpp>
#include <lade/error.hpp>
#include <lade/failure.hpp>
#include <lade/lineage.hpp>
#include <lade/pipeline.hpp>
#include <lade/task.hpp>
#include <lade/through.hpp>

#include <concepts>
#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace lade {

struct route_options;

namespace detail {

// The validated options of a route.
struct route_settings {
  // Throws error(invalid_argument) naming the stage and the option if an option is invalid.
  route_settings(const route_options& options, std::string stage, std::size_t paths_in_all);

  // The options of the queue behind all paths of a route.
  link_options results() const {
    auto options = link_options::gathering(2 * paths, paths);
    options.ring.measures_depth = true;
    return options;
  }

  // Returns the function that measures items of type T; null without a limit in bytes. Throws
  // error(invalid_argument) if there is one and the bytes of the items are unknown.
  template <class T>
  measure_item measure() const {
    return measure_for<T>(buffer_bytes, name, "buffer_bytes");
  }

  // The facts of a route and of a route_batches.
  node_facts facts(node_ptr in, std::vector<node_ptr> ends) const;
  node_facts facts_for_batches(node_ptr in, std::vector<node_ptr> ends) const;

  std::string name;
  std::size_t paths;
  std::size_t buffer;
  std::uint64_t buffer_bytes;
  failure_policy policy;
};

// Throws error(invalid_argument): the router has returned a number that no path has.
[[noreturn]] void refuse_path(const std::string& number, std::size_t paths);

// Returns `number`. Throws error(invalid_argument) unless there is a path with that number.
std::size_t require_path(std::integral auto number, std::size_t paths) {
  if (std::cmp_less(number, 0) || std::cmp_greater_equal(number, paths))
    refuse_path(std::to_string(number), paths);
  return static_cast<std::size_t>(number);
}

// The number that a router returns for an In, or the result of the task that it returns.
template <class Router, class In>
using routed =
    typename outcome_of<std::remove_cvref_t<std::invoke_result_t<const Router&, const In&>>>::type;

// The router of a stage with items of type T, and its failure policy.
template <class T>
class path_chooser : public counted {
 public:
  path_chooser(shared_const<route_settings> settings, bool is_task)
      : awaits(is_task), settings_(std::move(settings)) {}

  // Whether the router returns tasks. If so, await later() instead of calling operator().
  const bool awaits;

  const route_settings& settings() const noexcept { return *settings_; }

  // Returns the number of the item's path, or split_base::dropped if the item is dropped. Throws if
  // the run ends.
  std::size_t operator()(const T& item, const lineage& origin, const open_context& run,
                         stage_counters& counters) const {
    try {
      return choose(item);
    } catch (...) {
      return failed(item, origin, run, counters);
    }
  }

  // The same for both kinds of routers. The chooser and all arguments must outlive the task.
  task<std::size_t> later(const T& item, const lineage& origin, const open_context& run,
                          stage_counters& counters) const {
    auto path = split_base::dropped;
    try {
      path = co_await choose_later(item);
    } catch (...) {
      path = failed(item, origin, run, counters);
    }
    co_return path;
  }

 private:
  // Throw error(invalid_argument) if the router returns an invalid path number.
  virtual std::size_t choose(const T& item) const = 0;
  virtual task<std::size_t> choose_later(const T& item) const = 0;

  // Call it in a catch block. Rethrows the failure if the failure ends the run.
  std::size_t failed(const T& item, const lineage& origin, const open_context& run,
                     stage_counters& counters) const {
    auto failure = run.failure(counters, settings_->policy, name_of(item), origin);
    if (failure) std::rethrow_exception(failure);
    return split_base::dropped;
  }

  shared_const<route_settings> settings_;
};

template <class T, class Router>
class path_chooser_of final : public path_chooser<T> {
  static_assert(std::is_invocable_v<const Router&, const T&>,
                "lade::route: the router must take the stage's item by const reference or value, "
                "and be callable as const: not a mutable lambda, not one that takes T&");
  static_assert(std::integral<routed<Router, T>>,
                "lade::route: the router must return the number of a path, or a task of it");
  static constexpr bool is_task =
      outcome_of<std::remove_cvref_t<std::invoke_result_t<const Router&, const T&>>>::is_task;

 public:
  path_chooser_of(shared_const<route_settings> settings, shared_const<Router> router)
      : path_chooser<T>(std::move(settings), is_task), router_(std::move(router)) {}

 private:
  std::size_t choose([[maybe_unused]] const T& item) const override {
    if constexpr (is_task)
      fatal("a router of tasks is awaited");
    else
      return require_path(+std::invoke(*router_, item), this->settings().paths);
  }
  task<std::size_t> choose_later(const T& item) const override {
    if constexpr (is_task) {
      auto path = co_await std::invoke(*router_, item);
      co_return require_path(+path, this->settings().paths);
    } else {
      co_return choose(item);
    }
  }

  shared_const<Router> router_;
};

template <class T, class Router>
auto chooser_for(const shared_const<route_settings>& settings, const shared_const<Router>& router) {
  return counted_ptr<const path_chooser<T>>(new path_chooser_of<T, Router>(settings, router));
}

// Moves each item to the path that the router chooses. `results`: the queue behind the paths.
template <class T>
class routed_items final : public distributor {
 public:
  routed_items(split<T>& to, std::shared_ptr<link_base> results,
               counted_ptr<const path_chooser<T>> chooser, const open_context& run,
               stage_counters& counters)
      : distributor(split_base::chosen_path),
        to_(to),
        results_(std::move(results)),
        chooser_(std::move(chooser)),
        run_(run),
        counters_(counters) {}

  choice choose(void* item, const lineage& origin) override {
    increment(counters_.in);
    const T& routed = *static_cast<const T*>(item);
    if (chooser_->awaits) return {.later = chooser_->later(routed, origin, run_, counters_)};
    return {.path = (*chooser_)(routed, origin, run_, counters_)};
  }

  void give(std::size_t path, void* item, lineage origin) override {
    if (!to_.give(path, std::move(*static_cast<T*>(item)), std::move(origin)))
      run_.refuse_state("a path of " + chooser_->settings().name + " has ended before its items");
  }

  void fail() noexcept override { results_->expect_failure(); }

 private:
  split<T>& to_;
  const std::shared_ptr<link_base> results_;
  const counted_ptr<const path_chooser<T>> chooser_;
  const open_context run_;
  stage_counters& counters_;
};

// The item type in which all paths of a route end.
template <class... Paths>
struct common_end {
  using type = void;  // of no paths, which the function refuses
};
template <class First, class... More>
struct common_end<First, More...> {
  static_assert((std::same_as<typename First::value_type, typename More::value_type> && ...),
                "lade::route: all paths must end in items of the same type");
  using type = typename First::value_type;
};
template <class Paths>
struct end_of_paths;
template <class... Paths>
struct end_of_paths<std::tuple<Paths...>> : common_end<Paths...> {};

// The paths as a list. All of them have the same type.
template <class T, class... Paths>
std::vector<pipeline<T>> as_list(const std::tuple<Paths...>& paths) {
  return std::apply([](const auto&... each) { return std::vector<pipeline<T>>{each...}; }, paths);
}

template <class T>
std::vector<node_ptr> ends_of(const std::vector<pipeline<T>>& paths) {
  std::vector<node_ptr> ends;
  for (auto& each : paths) ends.emplace_back(each.last());
  return ends;
}

// The node of a route from items of type T to items of type Out. It does not depend on the types of
// the router and of the paths.
//
//   input ─ split ─┬─> path ─╮
//                  ├─> path ─┼─> link ─> next stage
//                  └─> path ─╯
//
// The split before the paths queues the items of each path, and takes no item while the path of
// the item before is full. The link behind them is one queue with two results per path, plus the
// one that each path is making; a path is suspended while it is full. If the input fails, the paths
// still yield results of the items that they have. Then the failure is rethrown.
template <class T, class Out>
class routing final : public node<Out> {
 public:
  using chooser = counted_ptr<const path_chooser<T>>;

  routing(pipeline<T> in, std::vector<pipeline<Out>> paths, chooser choose)
      : node<Out>(choose->settings().facts(in.last(), ends_of(paths))),
        in_(std::move(in)),
        paths_(std::move(paths)),
        choose_(std::move(choose)),
        measure_in_(choose_->settings().template measure<T>()),
        measure_out_(choose_->settings().template measure<Out>()) {}

  async_generator<Out> open(const open_context& run) const override {
    auto& settings = choose_->settings();
    auto queue = settings.results();
    queue.limit(settings.buffer_bytes, measure_out_);
    owner<link_base> results(std::make_shared<link<Out>>(run, queue));
    auto inside = results->before(run);
    auto split = std::make_shared<detail::split<T>>(inside, paths_.size(), settings.buffer,
                                                    settings.buffer_bytes, measure_in_);
    auto upstream = inside.until(split->stop_token());
    std::vector<async_generator<Out>> opened;  // last path first: statistics reverse the order
    for (auto i = paths_.size(); i-- > 0;)
      opened.push_back(paths_[i].open(inside.in(split_base::path(split, i, run.path))));
    auto& counters = run.add_stage();
    split->count_for(counters);
    auto items = in_.open(upstream);
    results->count_for(counters);
    run.run->stages().record_workers(counters, {.slots = queue.ring.slots, .gathers = true});
    for (std::size_t i = 0; i < paths_.size(); ++i)
      results->start(std::move(opened[paths_.size() - 1 - i]), detail::split<T>::end_of(split, i));
    split->start(
        std::move(items),
        std::make_unique<routed_items<T>>(*split, results.shared(), choose_, upstream, counters),
        counters);
    return observe(deliver_from<Out>(std::move(results)), run, counters);
  }

 private:
  pipeline<T> in_;
  std::vector<pipeline<Out>> paths_;
  chooser choose_;
  measure_item measure_in_;
  measure_item measure_out_;
};

// A router and its paths, while the item type is unknown.
template <class Router, class... Paths>
class route_description {
 protected:
  route_description(Router router, route_settings settings, std::tuple<Paths...> paths)
      : router_(std::move(router)), settings_(std::move(settings)), paths_(std::move(paths)) {}

  const shared_const<route_settings>& settings() const noexcept { return settings_; }
  const shared_const<Router>& function() const noexcept { return router_; }

  // Appends a node of type Step, which routes items of type T, to the pipeline.
  template <template <class, class> class Step, class T, class In, class Chooser>
  auto attach_as(const pipeline<In>& in, Chooser choose) const {
    auto attached = attach_paths(paths_, in, std::nullopt);
    using out = typename end_of_paths<decltype(attached)>::type;
    auto paths = as_list<out>(attached);
    counted_ptr step(new Step<T, out>(in, std::move(paths), std::move(choose)));
    return pipeline<out>(std::move(step));
  }

 private:
  shared_const<Router> router_;
  shared_const<route_settings> settings_;
  std::tuple<Paths...> paths_;
};

}  // namespace detail
}  // namespace lade
