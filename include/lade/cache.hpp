// cache: items of the first pass, kept for the passes after it.

#pragma once

#include <lade/async_generator.hpp>
#include <lade/batch.hpp>
#include <lade/buffer.hpp>
#include <lade/detail/items.hpp>
#include <lade/detail/run_state.hpp>
#include <lade/lineage.hpp>
#include <lade/pipeline.hpp>
#include <lade/sample.hpp>
#include <lade/tensor.hpp>

#include <atomic>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <ranges>
#include <type_traits>
#include <utility>
#include <vector>

namespace lade {

// How much a cache keeps, any number of each; all, if nothing is given.
struct cache_options {
  std::uint64_t items = ~std::uint64_t{0};
  std::uint64_t bytes = ~std::uint64_t{0};
};

namespace detail {

template <class T>
concept has_bytes = requires(const T& item) {
  { item.bytes() } -> std::convertible_to<std::size_t>;
};

// Whether it can be told how many bytes an item of type T holds.
template <class T>
consteval bool tells_bytes() {
  if constexpr (std::ranges::sized_range<const T>)
    return tells_bytes<std::ranges::range_value_t<const T>>();
  else
    return has_bytes<T> || std::is_trivially_copyable_v<T> || std::same_as<T, buffer> ||
           std::same_as<T, tensor> || std::same_as<T, sample> || std::same_as<T, sample_batch>;
}

template <class T>
std::uint64_t bytes_of(const T& item) {
  if constexpr (has_bytes<T>) {
    return item.bytes();
  } else if constexpr (std::same_as<T, buffer>) {
    return item.size();
  } else if constexpr (std::same_as<T, tensor>) {
    return item.spec().bytes();
  } else if constexpr (std::same_as<T, sample>) {
    return item.key().size() + item.content_bytes();
  } else if constexpr (std::same_as<T, sample_batch>) {
    std::uint64_t sum = bytes_of(item.samples());
    for (auto& each : item.tensors()) sum += bytes_of(each.tensor());
    return sum;
  } else if constexpr (std::ranges::sized_range<const T>) {
    if constexpr (std::is_trivially_copyable_v<std::ranges::range_value_t<const T>>)
      return std::ranges::size(item) * sizeof(std::ranges::range_value_t<const T>);
    std::uint64_t sum = 0;
    for (auto&& each : item) sum += bytes_of(each);
    return sum;
  } else {
    return sizeof(item);
  }
}

// Whether they have a position in common.
bool meet(const lineage& a, const lineage& b) noexcept;

// What a cache has kept of a pass. Immutable.
template <class T>
struct kept_pass {
  explicit kept_pass(const opening& run) : epoch(run.epoch), seed(run.seed), first(run.first) {}

  std::uint64_t epoch;
  std::uint64_t seed;
  std::uint64_t first;
  std::vector<held_item<T>> items;
  std::shared_ptr<const lineage> positions;  // of the items
  bool whole = false;                        // these are all

  // What the stages before are opened with to give the rest.
  opening before(const opening& run) const {
    auto result = run;
    result.epoch = epoch;
    result.seed = seed;
    result.first = first;
    result.kept = positions;
    return result;
  }
};

// What the runs of one pipeline share. Any thread.
template <class T>
class cache_store {
 public:
  std::shared_ptr<const kept_pass<T>> find() const {
    std::lock_guard lock(mutex_);
    return kept_;
  }

  // Whether the caller is to fill it, and then either publishes or releases.
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

// Keeps copies of what passes, until that is more than fits. Does nothing if another run does it,
// or in a profile, which sees the first items alone.
template <class T>
class cache_filler {
 public:
  cache_filler(std::shared_ptr<cache_store<T>> store, const cache_options& options,
               const opening& run)
      : store_(!run.profiling && store->claim() ? std::move(store) : nullptr),
        options_(options),
        pass_(run) {
    if (store_) input_.emplace(run.run);
  }
  cache_filler(cache_filler&& other) noexcept = default;
  cache_filler& operator=(cache_filler&&) = delete;
  ~cache_filler() {
    if (store_) store_->release();
  }

  opening before(const opening& run) const {
    auto result = run;
    result.indivisible = indivisible_;
    return result;
  }

  void add(const T& item, const lineage& origin) {
    if (!store_) return;
    if (origin.empty()) *indivisible_ = true;
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
    if constexpr (tells_bytes<T>()) {
      auto bytes = bytes_of(item);
      if (bytes > options_.bytes - bytes_) return false;
      bytes_ += bytes;
    }
    return true;
  }

  // Ends with the item before this one, of which no parts are kept.
  void cut_before(const lineage& origin) {
    auto& items = pass_.items;
    while (!items.empty() && meet(items.back().origin, origin)) items.pop_back();
    if (!items.empty() && !*indivisible_) return publish();
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
  std::optional<open_input> input_;        // so that no epoch begins before it may use this one's
  cache_options options_;
  kept_pass<T> pass_;
  std::uint64_t bytes_ = 0;
  std::shared_ptr<std::atomic<bool>> indivisible_ = std::make_shared<std::atomic<bool>>(false);
};

}  // namespace detail

class cache_stage {
 public:
  explicit cache_stage(const cache_options& options) noexcept : options_(options) {}

  template <class T>
  pipeline<T> attach(const pipeline<T>& in) const {
    static_assert(std::copy_constructible<T>,
                  "lade::cache: items that cannot be copied cannot be kept");
    if (!detail::tells_bytes<T>()) require_no_bytes();
    auto store = std::make_shared<detail::cache_store<T>>();
    auto facts = detail::node_facts::behind(in.last(), "cache");
    return detail::make_pipeline<T>(std::move(facts), [in, store, options = options_](
                                                          const detail::opening& from) {
      from.refuse_state("cache gives what it has kept before the rest");
      auto run = from;
      run.mixes_parts = nullptr;  // what is behind does not matter to those before
      run.before_cache = true;
      auto kept = store->find();
      auto& counters = from.add_stage("cache", kept && kept->whole ? 0 : 1);
      if (!kept) {
        detail::cache_filler<T> filler(store, options, run);
        auto items = in.open(filler.before(run));
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
                                 detail::opening run, detail::stage_counters& counters) {
    while (auto* item = co_await in.next()) {
      detail::bump(counters.in);
      auto copy = [&] { filler.add(*item, in.origin()); };
      detail::handle(*item, in.origin(), run, counters, copy);
      detail::count_out(counters, *item);
      co_yield *item;
    }
    filler.end();
  }

  template <class T>
  static async_generator<T> replay(std::shared_ptr<const detail::kept_pass<T>> kept,
                                   std::optional<async_generator<T>> rest, detail::opening run,
                                   detail::stage_counters& counters, detail::open_input input) {
    for (auto& each : kept->items) {
      run.throw_if_stopped(counters);
      auto copy = [&] { return each.item; };
      auto item = detail::handle(each.item, each.origin, run, counters, copy);
      auto origin = detail::moved(each.origin, kept->first, run.first);
      detail::count_out(counters, item);
      detail::with_lineage<T> yielded{origin, item};
      co_yield yielded;
    }
    input.end();
    if (!rest) co_return;
    while (auto* item = co_await rest->next().apart()) {
      detail::bump(counters.in);
      auto origin = detail::moved(rest->origin(), kept->first, run.first);
      detail::count_out(counters, *item);
      detail::with_lineage<T> yielded{origin, *item};
      co_yield yielded;
    }
  }

  // Throws error(invalid_argument) if there is a limit in bytes.
  void require_no_bytes() const;

  cache_options options_;
};

// Keeps the first items of a pass in memory, as many as the options allow. Runs after it begin with
// copies of these, for which no stage before the cache works, and go on with the rest: every item
// once in every run. They belong to the pipeline, are shared by its copies and freed with the last.
//
// An item that a stage before the cache dropped because it failed (on_error::skip), while the cache
// was filled, is not tried again and not reported in later runs: it is missing there. Retry before
// the cache what may fail for a moment (docs/guides/batching.md).
//
// What is kept stays as it is: a shuffle or a random transformation before the cache gives in all
// runs what it gave in the first, also for the rest. Put behind it what is to differ from epoch to
// epoch. Copies of tensors and buffers share their memory, so that nobody may write to it; it
// counts to the limit of the runtime that it came from.
//
// A cache that is filled before the pass ends keeps a part. Where a run could not go on from a
// state, a part is not exact (docs/guides/batching.md), and then the whole is kept or nothing. A
// pass that fails or is left before the cache is filled keeps nothing. Of several runs at a time,
// one fills it. With a cache there is no state. In a path of tee, route or route_batches a run
// throws error(invalid_argument).
//
// Bytes are those that items hold, by their member bytes() where they have one. Throws
// error(invalid_argument) for a limit in bytes of items that do not tell theirs.
inline cache_stage cache(const cache_options& options = {}) noexcept {
  return cache_stage(options);
}

}  // namespace lade
