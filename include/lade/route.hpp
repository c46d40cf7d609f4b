// route, route_batches: each item goes down a path of its own.

#pragma once

#include <lade/async_generator.hpp>
#include <lade/channel.hpp>
#include <lade/detail/arrivals.hpp>
#include <lade/detail/items.hpp>
#include <lade/detail/lanes.hpp>
#include <lade/detail/owner.hpp>
#include <lade/detail/require.hpp>
#include <lade/detail/run_state.hpp>
#include <lade/detail/shared_const.hpp>
#include <lade/detail/split.hpp>
#include <lade/error.hpp>
#include <lade/failure.hpp>
#include <lade/lineage.hpp>
#include <lade/pipeline.hpp>
#include <lade/stats.hpp>
#include <lade/task.hpp>
#include <lade/through.hpp>

#include <concepts>
#include <cstddef>
#include <exception>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace lade {

struct route_options {
  // How many items may wait before each path; of batches, how many may be on the paths. Up to
  // 1,048,576; 0 counts as 1.
  std::size_t buffer = 16;

  // What becomes of items whose router throws, or gives the number of no path.
  std::optional<lade::on_error> on_error = {};  // the run's if not given
  lade::error_budget error_budget = {};

  std::string_view name = {};  // in statistics and errors
};

namespace detail {

// The router of a stage, and what happens where it fails.
template <class Router>
class path_chooser {
 public:
  path_chooser(Router router, std::size_t paths, const route_options& options,
               std::string_view otherwise)
      : router_(std::move(router)),
        paths_(paths),
        policy_{.finally = options.on_error, .budget = options.error_budget},
        name_(stage_name<Router>(options.name, otherwise)) {
    require_count(name_, "buffer", options.buffer);
    require_budget(name_, options.error_budget);
  }

  const std::string& name() const noexcept { return name_; }

  // The number of the item's path; nothing if the item is to be dropped.
  template <class T>
  std::optional<std::size_t> operator()(const T& item, const lineage& origin, const opening& run,
                                        stage_counters& counters) const {
    static_assert(std::integral<std::remove_cvref_t<std::invoke_result_t<const Router&, const T&>>>,
                  "lade::route: the router must return the number of a path");
    try {
      return checked(+std::invoke(*router_, item));
    } catch (...) {
      auto failure = run.failure(counters, policy_, name_of(item), origin);
      if (failure) std::rethrow_exception(failure);
      return std::nullopt;
    }
  }

 private:
  template <class Number>
  std::size_t checked(Number path) const {
    if (std::cmp_less(path, 0) || std::cmp_greater_equal(path, paths_))
      throw error(errc::invalid_argument, "choose a path",
                  "number " + std::to_string(path) + " of " + std::to_string(paths_));
    return static_cast<std::size_t>(path);
  }

  shared_const<Router> router_;
  std::size_t paths_;
  failure_policy policy_;
  std::string name_;
};

// What all paths of a route end in.
template <class First, class... More>
struct common_end {
  static_assert((std::same_as<typename First::value_type, typename More::value_type> && ...),
                "lade::route: all paths must end in items of the same type");
  using type = typename First::value_type;
};
template <class Paths>
struct end_of_paths;
template <class... Paths>
struct end_of_paths<std::tuple<Paths...>> : common_end<Paths...> {};

// The same paths, all of the same type, as a list.
template <class T, class... Paths>
std::vector<pipeline<T>> as_list(const std::tuple<Paths...>& paths) {
  return std::apply([](const auto&... each) { return std::vector<pipeline<T>>{each...}; }, paths);
}

}  // namespace detail

template <class Router, class... Paths>
class route_stage {
 public:
  route_stage(Router router, const route_options& options, std::tuple<Paths...> paths)
      : choose_(std::move(router), sizeof...(Paths), options, "route"),
        buffer_(options.buffer),
        paths_(std::move(paths)) {}

  template <class T>
  auto attach(const pipeline<T>& in) const {
    auto attached = detail::attach_paths<T>(paths_, in.length());
    using out = typename detail::end_of_paths<decltype(attached)>::type;
    auto paths = detail::as_list<out>(attached);
    return detail::make_pipeline<out>(
        paths.back().length() + 1,
        [in, paths, choose = choose_, buffer = buffer_](const detail::opening& run) {
          return open<T, out>(in, paths, choose, buffer, run);
        });
  }

 private:
  using chooser = detail::path_chooser<Router>;

  template <class T, class Out>
  static async_generator<Out> open(const pipeline<T>& in, const std::vector<pipeline<Out>>& paths,
                                   const chooser& choose, std::size_t buffer,
                                   const detail::opening& run) {
    detail::owner results(std::make_shared<detail::arrivals<Out>>(run, paths.size(), paths.size()));
    auto inside = run.until(results->stop_token()).reordering("route");
    auto split = std::make_shared<detail::split<T>>(inside, paths.size(), buffer);
    auto upstream = inside.until(split->stop_token());
    inside.split = split;
    std::vector<async_generator<Out>> opened;  // from the last on: statistics turn the order
    for (auto path = paths.rbegin(); path != paths.rend(); ++path)
      opened.push_back(path->open(inside));
    auto& counters = run.add_stage(choose.name());
    auto items = in.open(upstream);
    results->count_for(counters);
    for (std::size_t i = 0; i < paths.size(); ++i)
      results->start(std::move(opened[paths.size() - 1 - i]), detail::split<T>::end_of(split, i));
    split->start(
        deal<T, Out>(split, results.shared(), std::move(items), choose, upstream, counters),
        counters);
    return detail::observe(detail::arrivals<Out>::deliver(std::move(results)), run, counters);
  }

  // Brings the items to their paths.
  template <class T, class Out>
  static task<> deal(std::shared_ptr<detail::split<T>> split,
                     std::shared_ptr<detail::arrivals<Out>> results, async_generator<T> in,
                     chooser choose, detail::opening run, detail::stage_counters& counters) {
    std::exception_ptr failure;
    try {
      lineage origin;  // with that of what was dropped before
      while (auto* item = co_await in.next()) {
        detail::bump(counters.in);
        origin.merge(in.origin());
        auto path = choose(*item, in.origin(), run, counters);
        if (!path) continue;
        co_await split->room(*path);
        if (!split->give(*path, std::move(*item), std::exchange(origin, {})))
          run.refuse_state("a path of " + choose.name() + " has ended before its items");
      }
    } catch (...) {
      failure = std::current_exception();
      results->expect_failure();
    }
    split->end_input(failure);
  }

  chooser choose_;
  std::size_t buffer_;
  std::tuple<Paths...> paths_;
};

template <class Router, class... Paths>
class route_batches_stage {
 public:
  route_batches_stage(Router router, const route_options& options, std::tuple<Paths...> paths)
      : choose_(std::move(router), sizeof...(Paths), options, "route_batches"),
        buffer_(options.buffer),
        paths_(std::move(paths)) {}

  template <class T>
  auto attach(const pipeline<std::vector<T>>& in) const {
    auto attached = detail::attach_paths<std::vector<T>>(paths_, in.length());
    using out = typename detail::end_of_paths<decltype(attached)>::type;
    static_assert(std::same_as<out, std::vector<typename out::value_type>>,
                  "lade::route_batches: paths must end in vectors");
    auto paths = detail::as_list<out>(attached);
    return detail::make_pipeline<out>(
        paths.back().length() + 1,
        [in, paths, choose = choose_, buffer = buffer_](const detail::opening& run) {
          return open(in, paths, choose, buffer, run);
        });
  }

 private:
  using chooser = detail::path_chooser<Router>;

  // What has become of a batch.
  class parted {
   public:
    parted(lineage positions, std::vector<std::size_t> numbers)
        : origin(std::move(positions)), paths(std::move(numbers)) {}
    lineage origin;
    std::vector<std::size_t> paths;  // that a part was sent down
  };
  using batches = channel<parted>;

  template <class In, class Out>
  static async_generator<Out> open(const pipeline<In>& in, const std::vector<pipeline<Out>>& paths,
                                   const chooser& choose, std::size_t buffer,
                                   const detail::opening& run) {
    detail::owner stop(std::make_shared<detail::lane_stop>(run));
    auto inside = run.until(stop->token());
    inside.place = {};  // what waits here is not under way
    auto split = std::make_shared<detail::split<In>>(inside, paths.size(), buffer);
    split->watch(run.place, stop->source());
    inside.split = split;
    std::vector<std::shared_ptr<detail::lane<Out>>> lanes(paths.size());
    for (auto i = paths.size(); i-- > 0;) {  // from the last on: statistics turn the order
      inside.place = {split, i};
      lanes[i] = std::make_shared<detail::lane<Out>>(inside, paths[i]);
    }
    auto& counters = run.add_stage(choose.name());
    auto upstream = run.until(split->stop_token());
    auto items = in.open(upstream);
    std::vector<async_generator<Out>> results;
    for (std::size_t i = 0; i < paths.size(); ++i) {
      lanes[i]->start(counters, detail::split<In>::end_of(split, i));
      results.push_back(detail::lane<Out>::deliver(lanes[i]));
    }
    run.run->note_workers(counters, {.slots = buffer + 1, .gathers = true});
    auto begun = std::make_shared<batches>(buffer + 1);
    split->start(deal(split, begun, std::move(items), paths.size(), choose, upstream, counters),
                 counters);
    auto joined = join(std::move(results), std::move(stop), split, begun, counters);
    return detail::observe(std::move(joined), run, counters);
  }

  // Takes batches apart and sends the parts down the paths, as long as there is room for a batch.
  template <class T>
  static task<> deal(std::shared_ptr<detail::split<std::vector<T>>> split,
                     std::shared_ptr<batches> begun, async_generator<std::vector<T>> in,
                     std::size_t paths, chooser choose, detail::opening run,
                     detail::stage_counters& counters) {
    std::exception_ptr failure;
    try {
      while (true) {
        co_await split->room(detail::split_base::batches);
        split->note_asking(true);
        auto* batch = co_await in.next();
        split->note_asking(false);
        if (!batch) break;
        counters.in.fetch_add(batch->size(), std::memory_order_relaxed);
        std::vector<std::vector<T>> parts(paths);
        for (auto&& each : *batch) {
          T item(std::move(each));
          if (auto path = choose(item, in.origin(), run, counters))
            parts[*path].push_back(std::move(item));
        }
        split->begin_batch();
        co_await begun->push(parted(in.origin(), paths_of(parts)));
        for (std::size_t path = 0; path < paths; ++path)
          if (!parts[path].empty()) split->give(path, std::move(parts[path]), in.origin());
      }
    } catch (...) {
      failure = std::current_exception();
    }
    split->end_input(failure);
    begun->close();
  }

  template <class Part>
  static std::vector<std::size_t> paths_of(const std::vector<Part>& parts) {
    std::vector<std::size_t> numbers;
    for (std::size_t path = 0; path < parts.size(); ++path)
      if (!parts[path].empty()) numbers.push_back(path);
    return numbers;
  }

  // Puts what has become of a batch's parts together again.
  template <class Out>
  static async_generator<Out> join(std::vector<async_generator<Out>> paths,
                                   detail::owner<detail::lane_stop>,
                                   std::shared_ptr<detail::split_base> split,
                                   std::shared_ptr<batches> begun,
                                   detail::stage_counters& counters) {
    while (auto batch = co_await next_of(*begun, *split, counters)) {
      Out joined;
      for (auto path : batch->paths) {
        auto* part = co_await paths[path].next().apart();
        if (!part) throw_lacking(path, batch->origin);
        require_part_of(path, batch->origin, paths[path].origin());
        joined.insert(joined.end(), std::make_move_iterator(part->begin()),
                      std::make_move_iterator(part->end()));
      }
      detail::with_lineage<Out> yielded{batch->origin, joined};
      co_yield yielded;
      split->end_batch();
    }
    for (std::size_t path = 0; path < paths.size(); ++path) {
      auto* more = co_await paths[path].next().apart();
      if (more) throw_unlike(path, "it gave more vectors than it was sent");
    }
    split->rethrow_failure();
  }

  static task<std::optional<parted>> next_of(batches& begun, detail::split_base& split,
                                             detail::stage_counters& counters) {
    detail::stopwatch waiting(counters.starving);
    split.note_awaited(detail::split_base::batches);
    auto batch = co_await begun.pop();
    split.note_taken(detail::split_base::batches);
    co_return batch;
  }

  [[noreturn]] static void throw_unlike(std::size_t path, const std::string& why) {
    throw error(errc::failed, "take a vector for each part from path " + std::to_string(path), why);
  }
  [[noreturn]] static void throw_lacking(std::size_t path, const lineage& origin) {
    throw_unlike(path, "it gave none for items " + to_string(origin));
  }
  static void require_part_of(std::size_t path, const lineage& batch, const lineage& part) {
    if (part != batch)
      throw_unlike(path,
                   "it gave one of items " + to_string(part) + " for items " + to_string(batch));
  }

  chooser choose_;
  std::size_t buffer_;
  std::tuple<Paths...> paths_;
};

// Sends every item down one of several paths: `router(item)` gives its number, from 0 on.
//
//   auto decoded = files | lade::route(kind_of, lade::map(decode_jpeg),
//                                      lade::chain(lade::map(read_raw), lade::map(develop)));
//
// A path is a stage or a chain of stages, so also another route; all paths end in items of one
// type. Paths work beside each other, and their results come as they are finished: in order within
// a path, in no order between paths. What a path drops or adds is its own affair. The items of a
// path that has ended by itself (by a take in it) are dropped.
//
// The router is called by one thread of the CPU pool at a time, when the item comes. If it throws,
// or there is no path of that number, the item fails, as `on_error` says.
template <class Router, class... Paths>
route_stage<std::decay_t<Router>, Paths...> route(Router&& router, const route_options& options,
                                                  Paths... paths) {
  static_assert(sizeof...(Paths) > 0, "lade::route: there must be a path");
  return {std::forward<Router>(router), options, {std::move(paths)...}};
}
template <class Router, class... Paths>
route_stage<std::decay_t<Router>, Paths...> route(Router&& router, Paths... paths) {
  static_assert(sizeof...(Paths) > 0, "lade::route: there must be a path");
  return {std::forward<Router>(router), {}, {std::move(paths)...}};
}

// The same for items in vectors: takes each vector apart, sends the parts down their paths as
// vectors, and puts what comes of them together again, the items of path 0 first. Batches keep
// their order. `router(item)` is called for each item of a batch.
//
// A path must give one vector for each that it is sent, of any number of items, and keep their
// order; the run fails if it does not. Only parts that are not empty are sent.
template <class Router, class... Paths>
route_batches_stage<std::decay_t<Router>, Paths...> route_batches(Router&& router,
                                                                  const route_options& options,
                                                                  Paths... paths) {
  static_assert(sizeof...(Paths) > 0, "lade::route_batches: there must be a path");
  return {std::forward<Router>(router), options, {std::move(paths)...}};
}
template <class Router, class... Paths>
route_batches_stage<std::decay_t<Router>, Paths...> route_batches(Router&& router, Paths... paths) {
  static_assert(sizeof...(Paths) > 0, "lade::route_batches: there must be a path");
  return {std::forward<Router>(router), {}, {std::move(paths)...}};
}

}  // namespace lade
