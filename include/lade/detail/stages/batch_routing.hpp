// The part of a route_batches that splits batches and joins the results of its paths.

#pragma once

#include <lade/async_generator.hpp>
#include <lade/detail/common/counted.hpp>
#include <lade/detail/common/shared_const.hpp>
#include <lade/detail/coroutines/owner.hpp>
#include <lade/detail/observability/stage_counters.hpp>
#include <lade/detail/pipeline/items.hpp>
#include <lade/detail/pipeline/run_state.hpp>
#include <lade/detail/stages/link.hpp>
#include <lade/detail/stages/routing.hpp>
#include <lade/detail/stages/split.hpp>
#include <lade/error.hpp>
#include <lade/lineage.hpp>
#include <lade/pipeline.hpp>
#include <lade/task.hpp>

#include <atomic>
#include <concepts>
#include <cstddef>
#include <exception>
#include <iterator>
#include <memory>
#include <optional>
#include <ranges>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace lade::detail {

// Chooses the path of each item of a batch.
template <class T>
class batch_chooser : public counted {
 public:
  virtual const route_settings& settings() const noexcept = 0;

  // Returns the path of each item, split_base::dropped if the item is dropped. The chooser and all
  // arguments must outlive the task.
  virtual task<std::vector<std::size_t>> choose(const std::vector<T>& batch, const lineage& origin,
                                                const open_context& run,
                                                stage_counters& counters) const = 0;
};

// Calls a router of items for each item of a batch.
template <class T, class Router>
class item_by_item final : public batch_chooser<T> {
 public:
  item_by_item(const shared_const<route_settings>& settings, const shared_const<Router>& router)
      : chooser_(settings, router) {}

  const route_settings& settings() const noexcept override { return chooser_.settings(); }

  task<std::vector<std::size_t>> choose(const std::vector<T>& batch, const lineage& origin,
                                        const open_context& run,
                                        stage_counters& counters) const override {
    std::vector<std::size_t> paths;
    paths.reserve(batch.size());
    for (auto&& each : batch) {
      const T& item = each;
      auto path = split_base::dropped;
      if (chooser_.awaits)
        path = co_await chooser_.later(item, origin, run, counters);
      else
        path = chooser_(item, origin, run, counters);
      paths.push_back(path);
    }
    co_return paths;
  }

 private:
  path_chooser_of<T, Router> chooser_;
};

// Throws error(invalid_argument) unless a router has returned one path for each item.
void require_path_for_each(std::size_t paths, std::size_t items);

// Calls a router of batches once for each batch.
template <class T, class Router>
class whole_batch final : public batch_chooser<T> {
  using batch_type = std::vector<T>;
  static_assert(std::ranges::input_range<routed<Router, batch_type>> &&
                    std::integral<std::ranges::range_value_t<routed<Router, batch_type>>>,
                "lade::route_batches: a router of batches must return a range with the number of a "
                "path for each item, or a task of it");
  static constexpr bool is_task = outcome_of<
      std::remove_cvref_t<std::invoke_result_t<const Router&, const batch_type&>>>::is_task;

 public:
  whole_batch(shared_const<route_settings> settings, shared_const<Router> router)
      : settings_(std::move(settings)), router_(std::move(router)) {}

  const route_settings& settings() const noexcept override { return *settings_; }

  task<std::vector<std::size_t>> choose(const batch_type& batch, const lineage& origin,
                                        const open_context& run,
                                        stage_counters& counters) const override {
    std::vector<std::size_t> paths;
    std::exception_ptr failure;
    bool has_failed = false;
    try {
      paths = co_await call(batch);
    } catch (...) {
      has_failed = true;
      failure = run.failure(counters, settings_->policy, {}, origin);
    }
    if (failure) std::rethrow_exception(failure);
    if (has_failed) paths.assign(batch.size(), split_base::dropped);
    co_return paths;
  }

 private:
  task<std::vector<std::size_t>> call(const batch_type& batch) const {
    if constexpr (is_task) {
      auto numbers = co_await std::invoke(*router_, batch);
      co_return checked(numbers, batch.size());
    } else {
      auto numbers = std::invoke(*router_, batch);
      co_return checked(numbers, batch.size());
    }
  }

  template <class Numbers>
  std::vector<std::size_t> checked(Numbers& numbers, std::size_t items) const {
    std::vector<std::size_t> paths;
    for (auto each : numbers) paths.push_back(require_path(+each, settings_->paths));
    require_path_for_each(paths.size(), items);
    return paths;
  }

  shared_const<route_settings> settings_;
  shared_const<Router> router_;
};

template <class T, class Router>
counted_ptr<const batch_chooser<T>> batch_chooser_for(const shared_const<route_settings>& settings,
                                                      const shared_const<Router>& router) {
  using chooser = counted_ptr<const batch_chooser<T>>;
  constexpr bool of_items = std::is_invocable_v<const Router&, const T&>;
  constexpr bool of_batches = std::is_invocable_v<const Router&, const std::vector<T>&>;
  static_assert(of_items || of_batches,
                "lade::route_batches: the router must take an item or a std::vector of items, by "
                "const reference or value, and be callable as const: not a mutable lambda");
  if constexpr (of_items)
    return chooser(new item_by_item<T, Router>(settings, router));
  else if constexpr (of_batches)
    return chooser(new whole_batch<T, Router>(settings, router));
  else
    return chooser();
}

// A batch that has been split into parts.
class parted_batch {
 public:
  parted_batch(lineage positions, std::vector<std::size_t> numbers)
      : origin(std::move(positions)), paths(std::move(numbers)) {}
  lineage origin;
  std::vector<std::size_t> paths;  // paths to which a part was sent
};

// Splits each batch into one part per path. Puts a record of the batch into the link `records`, and
// then sends the parts.
template <class T>
class batch_parts final : public distributor {
 public:
  using in = std::vector<T>;

  batch_parts(split<in>& to, const std::shared_ptr<link_base>& records,
              counted_ptr<const batch_chooser<T>> chooser, const open_context& run,
              stage_counters& counters)
      : distributor(split_base::batches),
        to_(to),
        records_(*records, records),
        chooser_(std::move(chooser)),
        run_(run),
        counters_(counters) {}

  choice choose(void* item, const lineage& origin) override {
    return {.later = part(*static_cast<in*>(item), origin)};
  }

  void give(std::size_t, void*, lineage origin) override {
    for (std::size_t path = 0; path < parts_.size(); ++path)
      if (!parts_[path].empty()) to_.give(path, std::move(parts_[path]), origin);
  }

  void end() noexcept override { records_.end(nullptr); }

 private:
  task<std::size_t> part(in& batch, const lineage& origin) {
    counters_.in.fetch_add(batch.size(), std::memory_order_relaxed);
    auto paths = co_await chooser_->choose(batch, origin, run_, counters_);
    parts_.clear();
    parts_.resize(chooser_->settings().paths);
    for (std::size_t i = 0; i < paths.size(); ++i)
      if (paths[i] != split_base::dropped) parts_[paths[i]].push_back(T(std::move(batch[i])));
    release_item(batch);
    to_.begin_batch();
    const bool is_open = co_await records_.capacity();
    if (!is_open) throw error(errc::stopped, "pass on a batch");
    parted_batch record(origin, paths_with_parts());
    records_.put(&record, {});
    records_.pass_on();
    co_return split_base::batches;
  }

  std::vector<std::size_t> paths_with_parts() const {
    std::vector<std::size_t> numbers;
    for (std::size_t path = 0; path < parts_.size(); ++path)
      if (!parts_[path].empty()) numbers.push_back(path);
    return numbers;
  }

  split<in>& to_;
  link_base::sink records_;
  const counted_ptr<const batch_chooser<T>> chooser_;
  const open_context run_;
  stage_counters& counters_;
  std::vector<in> parts_;  // of the batch that part() was called with
};

// The node of a route_batches from std::vector<T> to Out, which is a vector too.
//
//   input ─ split ─┬─> path ─ link ─╮
//                  ├─> path ─ link ─┼─> join() ─> next stage
//                  ╰──> records ────╯
//
// For each batch, the split waits until fewer than `buffer` are in flight, puts a record into the
// link of records, and then sends the parts. join() takes the records in order. It takes one result
// from each path in a record. The batch is in flight until the joined vector has been taken. So
// there is always a slot for a record.
template <class T, class Out>
class batch_routing final : public node<Out> {
  static_assert(std::same_as<Out, std::vector<typename Out::value_type>>,
                "lade::route_batches: paths must end in vectors");

 public:
  using in = std::vector<T>;
  using chooser = counted_ptr<const batch_chooser<T>>;

  batch_routing(pipeline<in> input, std::vector<pipeline<Out>> paths, chooser choose)
      : node<Out>(choose->settings().facts_for_batches(input.last(), ends_of(paths))),
        in_(std::move(input)),
        paths_(std::move(paths)),
        choose_(std::move(choose)) {}

  async_generator<Out> open(const open_context& run) const override {
    auto& settings = choose_->settings();
    owner stop(std::make_shared<paths_stop>(run));
    auto inside = run.until(stop->token()).in(nullptr);  // not in flight in an outer path
    auto split = std::make_shared<detail::split<in>>(inside, paths_.size(), settings.buffer);
    split->watch(run, stop->source());
    std::vector<opened_path<Out>> opened;  // last path first: statistics reverse the order
    for (auto i = paths_.size(); i-- > 0;) opened.emplace_back(inside, split, i, paths_[i]);
    auto& counters = run.add_stage();
    split->count_for(counters);
    auto upstream = run.until(split->stop_token()).taken_by(split->wanted());
    auto items = in_.open(upstream);
    std::vector<async_generator<Out>> results;
    for (std::size_t i = 0; i < paths_.size(); ++i) {
      auto& path = opened[paths_.size() - 1 - i];
      path.start(counters, detail::split<in>::end_of(split, i));
      results.push_back(std::move(path).deliver());
    }
    const auto queued = paths_.size() * link_options::results(split->buffer()).ring.slots;
    run.run->stages().record_workers(counters, {.slots = queued, .gathers = true});
    owner<link_base> records(std::make_shared<link<parted_batch>>(inside, of_records(*split)));
    records->count_for(counters);
    split->start(
        std::move(items),
        std::make_unique<batch_parts<T>>(*split, records.shared(), choose_, upstream, counters),
        counters);
    auto joined = join(std::move(results), std::move(stop), split, std::move(records));
    return observe(std::move(joined), run, counters);
  }

 private:
  static link_options of_records(const split_base& split) {
    auto options = link_options::gathering(split.buffer(), 1);
    options.marks_items = false;
    options.is_traced = false;
    return options;
  }

  // Joins the vectors that the paths return for the parts of each batch.
  static async_generator<Out> join(std::vector<async_generator<Out>> paths, owner<paths_stop>,
                                   std::shared_ptr<split_base> split, owner<link_base> records) {
    auto batches = deliver_from<parted_batch>(std::move(records));
    while (true) {
      split->record_awaited(split_base::batches);
      auto* batch = co_await batches.next().apart();
      split->record_taken(split_base::batches);
      if (!batch) break;
      Out joined;
      for (auto path : batch->paths) {
        auto* part = co_await paths[path].next().apart();
        if (!part) throw_lacking(path, batch->origin);
        require_part_of(path, batch->origin, paths[path].origin());
        joined.insert(joined.end(), std::make_move_iterator(part->begin()),
                      std::make_move_iterator(part->end()));
      }
      with_lineage<Out> yielded{batch->origin, joined};
      co_yield yielded;
      split->end_batch();
    }
    for (std::size_t path = 0; path < paths.size(); ++path) {
      auto* more = co_await paths[path].next().apart();
      if (more) throw_unlike(path, "it yielded more vectors than it received");
    }
    split->rethrow_failure();
  }

  [[noreturn]] static void throw_unlike(std::size_t path, const std::string& why) {
    throw error(errc::failed, "join the vectors of path " + std::to_string(path),
                why + "; a path must yield one vector per part, in order");
  }
  [[noreturn]] static void throw_lacking(std::size_t path, const lineage& origin) {
    throw_unlike(path, "it yielded no vector for items " + to_string(origin));
  }
  static void require_part_of(std::size_t path, const lineage& batch, const lineage& part) {
    if (part != batch)
      throw_unlike(path,
                   "it yielded items " + to_string(part) + " instead of items " + to_string(batch));
    if (!part_lineage::is_of(part, batch))
      throw_unlike(path, "it yielded " + part_lineage::in_words(part.part()) + " of items " +
                             to_string(batch) + " instead of " +
                             part_lineage::in_words(batch.part()));
  }

  pipeline<in> in_;
  std::vector<pipeline<Out>> paths_;
  chooser choose_;
};

}  // namespace lade::detail
