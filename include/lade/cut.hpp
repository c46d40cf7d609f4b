// take, skip and repeat choose the items of a pipeline; prefetch makes them ahead of the next
// stage.

#pragma once

#include <lade/async_generator.hpp>
#include <lade/autotune.hpp>
#include <lade/detail/coroutines/owner.hpp>
#include <lade/detail/data/item_bytes.hpp>
#include <lade/detail/pipeline/run_state.hpp>
#include <lade/detail/stages/link.hpp>
#include <lade/pipeline.hpp>
#include <lade/support/require.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace lade {

struct prefetch_options {
  // The limit in bytes of the items that wait. An item that is not made yet counts as the largest
  // so far, so only an item that is larger than all before exceeds the limit. One item may always
  // wait. For the bytes of an item see cache().
  std::uint64_t bytes = ~std::uint64_t{0};  // no limit
};

namespace detail {

// The facts of a stage that applies `step` to a stream instead of an order.
node_facts cut_facts(node_ptr in, std::string kind, const order_step& step);

node_facts prefetch_facts(node_ptr in, std::size_t count, std::uint64_t bytes);

}  // namespace detail

class take_stage {
 public:
  explicit take_stage(std::uint64_t count) noexcept : count_(count) {}

  template <class T>
  pipeline<T> attach(const pipeline<T>& in) const {
    if (auto ordered = in.then(detail::order_step::take(count_))) return *ordered;
    return detail::make_pipeline<T>(
        detail::cut_facts(in.last(), "take", detail::order_step::take(count_)),
        [in, count = count_](const detail::open_context& run) {
          return first(in.open(run), count);
        });
  }

 private:
  template <class T>
  static async_generator<T> first(async_generator<T> in, std::uint64_t count) {
    for (; count > 0; --count) {
      auto item = co_await in.next();
      if (!item) co_return;
      co_yield *item;
    }
  }

  std::uint64_t count_;
};

class skip_stage {
 public:
  explicit skip_stage(std::uint64_t count) noexcept : count_(count) {}

  template <class T>
  pipeline<T> attach(const pipeline<T>& in) const {
    if (auto ordered = in.then(detail::order_step::skip(count_))) return *ordered;
    return detail::make_pipeline<T>(
        detail::cut_facts(in.last(), "skip", detail::order_step::skip(count_)),
        [in, count = count_](const detail::open_context& run) {
          return rest(in.open(run), count);
        });
  }

 private:
  template <class T>
  static async_generator<T> rest(async_generator<T> in, std::uint64_t count) {
    while (auto item = co_await in.next()) {
      if (count > 0)
        --count;
      else
        co_yield *item;
    }
  }

  std::uint64_t count_;
};

class repeat_stage {
 public:
  explicit repeat_stage(std::uint64_t count) noexcept : count_(count) {}

  template <class T>
  pipeline<T> attach(const pipeline<T>& in) const {
    if (auto ordered = in.then(detail::order_step::repeat(count_))) return *ordered;
    return detail::make_pipeline<T>(
        detail::cut_facts(in.last(), "repeat", detail::order_step::repeat(count_)),
        [in, count = count_](const detail::open_context& run) {
          if (count == 1 || (count > 0 && run.run->profiling())) return in.open(run);
          std::optional<async_generator<T>> first;  // opened now to register the stages at the run
          if (count > 0) first.emplace(open_round(in, run, 0));
          return again(in, std::move(first), run, count, detail::open_input(run.run));
        });
  }

 private:
  template <class T>
  static async_generator<T> open_round(const pipeline<T>& in, const detail::open_context& run,
                                       std::uint64_t round) {
    auto sources = *run.pass;
    sources.span /= round + 2;  // several sources share the span
    return in.open(run.over(std::move(sources)));
  }

  // `items`: the generator of the first round; opened here if empty.
  template <class T>
  static async_generator<T> again(pipeline<T> in, std::optional<async_generator<T>> items,
                                  detail::open_context run, std::uint64_t count,
                                  detail::open_input input) {
    for (std::uint64_t round = 0; round < count; ++round) {
      run.throw_if_stopped("repeat");
      if (!items) items.emplace(open_round(in, run, round));
      if (round + 1 == count) input.end();  // the sources of the last round end it
      while (auto item = co_await items->next()) {
        auto positions = items->origin().ranges();
        if (!positions.empty()) begin_behind(positions.back().last, run);
        co_yield *item;
      }
      items.reset();
    }
  }

  // Numbers the items of the next round after `last`, a position of this round.
  static void begin_behind(std::uint64_t last, detail::open_context& run) {
    auto sources = *run.pass;
    if (last < sources.first) return;
    const auto passed = last + 1 - sources.first;
    sources.span -= passed;
    sources.first += passed;
    sources.round += passed;
    run = run.over(std::move(sources));
  }

  std::uint64_t count_;
};

class prefetch_stage {
 public:
  prefetch_stage(std::size_t count, const prefetch_options& options)
      : count_(count), options_(options) {
    if (count != automatic) support::require_count("prefetch", "count", count, {.least = 1});
  }

  template <class T>
  pipeline<T> attach(const pipeline<T>& in) const {
    auto measure = detail::measure_for<T>(options_.bytes, "prefetch", "bytes");
    return detail::make_pipeline<T>(
        detail::prefetch_facts(in.last(), count_, options_.bytes),
        [in, count = count_, bytes = options_.bytes, measure](const detail::open_context& run) {
          auto& counters = run.add_stage();
          const auto most = run.run->options().tune.most;
          const auto slots = count == automatic ? most : count;
          auto options = detail::link_options::ahead(slots);
          options.limit(bytes, measure);
          detail::owner<detail::link_base> ahead(std::make_shared<detail::link<T>>(run, options));
          ahead->count_for(counters);
          run.run->stages().record_workers(counters, {.slots = slots});
          if (count == automatic) ahead->tune(run.at->key(), detail::queue_tuner(most));
          ahead->start(in.open(ahead->before(run)));
          return detail::deliver_from<T>(std::move(ahead));
        });
  }

 private:
  std::size_t count_;
  prefetch_options options_;
};

// take yields the first `count` items; skip yields all items after the first `count`. Both are free
// if the items are reached by index (see from.hpp).
//
// Any count is valid. But the items of a run are numbered up to 2^62, before skip too: the run
// fails with error(limit_exceeded) at an item behind that, such as the first item of
// `from_index(5, ...) | repeat(~0) | skip(~0)`.
inline take_stage take(std::uint64_t count) noexcept { return take_stage(count); }
inline skip_stage skip(std::uint64_t count) noexcept { return skip_stage(count); }

// Yields all items `count` times. A shuffle before the repeat uses another order in each round. Any
// count is valid. A count of 0 yields no items. A count of ~0 repeats without end; then size() is
// unknown.
inline repeat_stage repeat(std::uint64_t count) noexcept { return repeat_stage(count); }

// Keeps up to `count` items ready, from 1 to 1,048,576, so that the stages before it run while the
// consumer is busy. With `automatic` it starts with 2 items. The run doubles the number while the
// next stage is starved though the queue was full: items arrive or are consumed in bursts. The
// limits are `tune_options::most` and the memory budget. Throws error(invalid_argument) for another
// count, or for a limit in bytes of items whose bytes are unknown.
//
//   clips | lade::prefetch(64, {.bytes = 2'000'000'000})
inline prefetch_stage prefetch(std::size_t count, const prefetch_options& options = {}) {
  return prefetch_stage(count, options);
}

}  // namespace lade
