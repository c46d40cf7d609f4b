// cache: keeps the items of the first run in memory for later runs.

#pragma once

#include <lade/async_generator.hpp>
#include <lade/detail/data/item_bytes.hpp>
#include <lade/detail/pipeline/items.hpp>
#include <lade/detail/pipeline/run_state.hpp>
#include <lade/lineage.hpp>
#include <lade/pipeline.hpp>

#include <atomic>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

namespace lade {

// The limits of a cache. Any values are valid, but `bytes` only for items whose bytes are known:
// see cache(). Without limits, a cache keeps all items.
struct cache_options {
  std::uint64_t items = ~std::uint64_t{0};
  std::uint64_t bytes = ~std::uint64_t{0};
};

namespace detail {

// Whether both have a position in common.
bool meet(const lineage& a, const lineage& b) noexcept;

// The items that a cache keeps of one run. Immutable once published.
template <class T>
struct kept_pass {
  explicit kept_pass(const source_pass& of)
      : epoch(of.epoch), seed(of.seed), round(of.round), first(of.first) {}

  std::uint64_t epoch;
  std::uint64_t seed;
  std::uint64_t round;
  std::uint64_t first;
  std::vector<held_item<T>> items;
  std::shared_ptr<const lineage> positions;  // positions of the items
  bool whole = false;                        // whether these are all items of the run

  // The context in which the stages before the cache are opened to yield the rest.
  open_context before(const open_context& run) const {
    auto sources = *run.pass;
    sources.first = first;
    sources.epoch = epoch;
    sources.seed = seed;
    sources.round = round;
    sources.kept = positions;
    return run.over(std::move(sources));
  }
};

// The kept items that all runs of a pipeline share. Any thread; the mutex guards all members.
//
// The store is empty, claimed or filled. claim() returns true to one run and moves the store from
// empty to claimed. That run then calls publish(), which fills the store permanently, or release(),
// which empties it. No run waits for another.
template <class T>
class cache_store {
 public:
  std::shared_ptr<const kept_pass<T>> find() const {
    std::lock_guard lock(mutex_);
    return kept_;
  }

  // Returns true if the caller must fill the store: it must then call publish() or release().
  bool claim() {
    std::lock_guard lock(mutex_);
    return !kept_ && !std::exchange(claimed_, true);
  }
  void release() {
    std::lock_guard lock(mutex_);
    claimed_ = false;
  }
  void publish(kept_pass<T> pass) {
    auto kept = std::make_shared<const kept_pass<T>>(std::move(pass));
    std::lock_guard lock(mutex_);
    kept_ = std::move(kept);
  }

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<const kept_pass<T>> kept_;
  bool claimed_ = false;
};

// Copies the items of a run into the store, up to the limits. Does nothing if another run fills the
// store, or in a profile, which processes only the first items.
template <class T>
class cache_filler {
 public:
  cache_filler(std::shared_ptr<cache_store<T>> store, const cache_options& options,
               const open_context& run)
      : store_(!run.run->profiling() && store->claim() ? std::move(store) : nullptr),
        options_(options),
        measure_(measure_for<T>(options.bytes, "cache", "bytes")),
        place_(*run.at),
        pass_(*run.pass) {
    if (store_) input_.emplace(run.run);
  }
  cache_filler(cache_filler&& other) noexcept = default;
  cache_filler& operator=(cache_filler&&) = delete;
  ~cache_filler() {
    if (store_) store_->release();
  }

  void add(const T& item, const lineage& origin) {
    if (!store_) return;
    if (origin.empty()) place_.indivisible = true;
    if (!takes(item)) return cut_before(origin);
    pass_.items.emplace_back(item, origin);
  }
  void end() {
    if (!store_) return;
    pass_.whole = true;
    publish();
  }

 private:
  bool takes(const T& item) {
    if (pass_.items.size() >= options_.items) return false;
    const auto bytes = measure_ ? measure_(std::addressof(item)) : 0;
    if (bytes > options_.bytes - bytes_) return false;
    bytes_ += bytes;
    return true;
  }

  // Publishes the items before the one with `origin`, without other parts of that one. Releases the
  // store instead if nothing is left, or if a part of the items cannot be kept exactly.
  void cut_before(const lineage& origin) {
    auto& items = pass_.items;
    while (!items.empty() && meet(items.back().origin, origin)) items.pop_back();
    if (!items.empty() && !place_.indivisible) return publish();
    items = {};
    std::exchange(store_, nullptr)->release();
    input_.reset();
  }

  void publish() {
    lineage positions;
    for (auto& each : pass_.items) positions.merge(each.origin);
    pass_.positions = std::make_shared<const lineage>(std::move(positions));
    std::exchange(store_, nullptr)->publish(std::move(pass_));
    input_.reset();
  }

  std::shared_ptr<cache_store<T>> store_;  // null if there is nothing to fill
  std::optional<open_input> input_;        // delays the next epoch until it can use the items
  cache_options options_;
  measure_item measure_;
  const planned_node& place_;
  kept_pass<T> pass_;
  std::uint64_t bytes_ = 0;
};

}  // namespace detail

class cache_stage {
 public:
  explicit cache_stage(const cache_options& options) noexcept : options_(options) {}

  template <class T>
  pipeline<T> attach(const pipeline<T>& in) const {
    static_assert(std::copy_constructible<T>,
                  "lade::cache: items that cannot be copied cannot be kept");
    detail::measure_for<T>(options_.bytes, "cache", "bytes");
    auto store = std::make_shared<detail::cache_store<T>>();
    return detail::make_pipeline<T>(facts(in.last()), [in, store, options = options_](
                                                          const detail::open_context& run) {
      auto kept = store->find();
      auto& counters = run.add_stage(kept && kept->whole ? 0 : 1);
      if (!kept) {
        detail::cache_filler<T> filler(store, options, run);
        auto items = in.open(run);
        return fill(std::move(items), std::move(filler), run, counters);
      }
      std::optional<async_generator<T>> rest;
      if (!kept->whole) rest.emplace(in.open(kept->before(run)));
      return replay(std::move(kept), std::move(rest), run, counters, detail::open_input(run.run));
    });
  }

 private:
  template <class T>
  static async_generator<T> fill(async_generator<T> in, detail::cache_filler<T> filler,
                                 detail::open_context run, detail::stage_counters& counters) {
    while (auto* item = co_await in.next()) {
      detail::increment(counters.in);
      auto copy = [&] { filler.add(*item, in.origin()); };
      detail::handle(*item, in.origin(), run, counters, copy);
      detail::count_out(counters, *item);
      co_yield *item;
    }
    filler.end();
  }

  template <class T>
  static async_generator<T> replay(std::shared_ptr<const detail::kept_pass<T>> kept,
                                   std::optional<async_generator<T>> rest, detail::open_context run,
                                   detail::stage_counters& counters, detail::open_input input) {
    for (auto& each : kept->items) {
      run.throw_if_stopped(counters);
      auto copy = [&] { return each.item; };
      auto item = detail::handle(each.item, each.origin, run, counters, copy);
      auto origin = detail::moved(each.origin, kept->first, run.pass->first);
      detail::count_out(counters, item);
      detail::with_lineage<T> yielded{origin, item};
      co_yield yielded;
    }
    input.end();
    if (!rest) co_return;
    while (auto* item = co_await rest->next().apart()) {
      detail::increment(counters.in);
      auto origin = detail::moved(rest->origin(), kept->first, run.pass->first);
      detail::count_out(counters, *item);
      detail::with_lineage<T> yielded{origin, *item};
      co_yield yielded;
    }
  }

  detail::node_facts facts(detail::node_ptr in) const;

  cache_options options_;
};

// Keeps copies of the first items of a run in memory, up to the limits of the options. Later runs
// start with copies of these items, without work in the stages before the cache, and continue with
// the rest. Every run yields every item once. The pipeline owns the kept items; its copies share
// them, and the last one frees them.
//
// The stages before the cache keep the epoch and the seed of the run that filled it: a shuffle or a
// random transformation there yields the same in all runs, also for the rest. Put stages that must
// differ from epoch to epoch behind the cache.
//
// Copies of tensors and buffers share their memory, so no stage may write to it. That memory counts
// towards the budget of the runtime that allocated it.
//
// An item that fails and is dropped (on_error::skip) before the cache while the cache is filled is
// missing in all later runs. It is neither tried nor reported again. If a function may fail
// temporarily, retry before the cache (docs/guides/batching.md).
//
// - If a limit is reached before the run ends, the cache keeps a part of the items. Exception: if
//   the stages before the cache cannot resume from a state (docs/guides/batching.md), or one of
//   them is a merge in turns or by weights, or a shuffle with a window, the cache keeps all items
//   or none.
// - If the run fails, or is stopped before the cache is full, the cache keeps nothing.
// - Of several concurrent runs, one fills the cache.
//
// A run with a cache has no state (no checkpoint). A run throws error(invalid_argument) if the
// cache is in a path of tee, route or route_batches.
//
// The bytes of an item, for all limits in bytes:
// - the result of its member bytes(), if there is one: an integer. A negative one counts as 0, and
//   so does a call that throws.
// - of a buffer, tensor, sample or sample_batch: those of its data
// - of a sized range: the sum of those of its elements
// - of a trivially copyable object: its size
// The bytes of other items are unknown. Then `pipeline | cache({.bytes = ...})` throws
// error(invalid_argument), as every stage with such a limit does.
inline cache_stage cache(const cache_options& options = {}) noexcept {
  return cache_stage(options);
}

}  // namespace lade
