// shuffle: a random order, different in every epoch.

#pragma once

#include <lade/async_generator.hpp>
#include <lade/detail/pipeline/run_state.hpp>
#include <lade/held.hpp>
#include <lade/pipeline.hpp>
#include <lade/random.hpp>
#include <lade/state.hpp>
#include <lade/support/require.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace lade {

struct shuffle_options {
  std::uint64_t seed = 0;

  // The number of items held, from which the next one is chosen: 1 to 1,073,741,824. Not used if
  // the items are reached by index (see from.hpp).
  std::size_t window = 1024;
};

namespace detail {

// The order in which a window shuffle yields its items. An item's number counts the items consumed
// before it. The class holds only numbers; shuffle_stage holds the items in the same slots.
class window_order {
 public:
  // The choice of the next item to yield. The item of the last slot then moves into `slot`.
  struct choice {
    std::uint64_t step;    // number of the choice
    std::uint64_t number;  // number of the item
    std::size_t slot;
  };

  window_order(random draw, std::size_t window) noexcept : draw_(draw), window_(window) {}

  bool is_full() const noexcept { return slots_.size() >= window_; }
  std::uint64_t taken() const noexcept { return taken_; }
  void add() { slots_.push_back(taken_++); }
  choice pick();

  // Repeats the choices of an earlier run, up to the last one whose item was delivered. Returns
  // those choices whose items were not delivered.
  std::vector<choice> replay(const state::choices& before);

  // The numbers of all items that were consumed but not delivered, ascending: the items of the
  // choices `picked`, and the items in the window.
  std::vector<std::uint64_t> undelivered(const std::vector<choice>& picked) const;

  // Removes the items for which `is_there(number)` is false from the window.
  template <class F>
  void keep(F is_there) {
    std::erase_if(slots_, [&](auto number) { return !is_there(number); });
  }

 private:
  random draw_;
  std::size_t window_;
  std::vector<std::uint64_t> slots_;  // numbers of the items in the window
  std::uint64_t taken_ = 0;
  std::uint64_t steps_ = 0;
};

}  // namespace detail

class shuffle_stage {
 public:
  explicit shuffle_stage(const shuffle_options& options) : options_(options) {
    support::require_count("shuffle", "window", options.window,
                           {.least = 1, .most = support::most_in_batch});
  }

  template <class T>
  pipeline<T> attach(const pipeline<T>& in) const {
    if (auto ordered = in.then(detail::order_step::shuffle(options_.seed))) return *ordered;
    return detail::make_pipeline<T>(
        detail::node_facts::behind(in.last(), "shuffle")
            .uncounted()
            .reordering("shuffle")
            .holding(options_.window)
            .with("seed", options_.seed)
            .with("window", options_.window),
        [in, options = options_](const detail::open_context& run) {
          run.depends_on_epoch("shuffle");
          detail::window_order order(random(options.seed, run.round()), options.window);
          auto made = run.choosing("shuffle " + std::to_string(options.seed) + " in a window of " +
                                   std::to_string(options.window));
          return from_window(in.open(run), std::move(order), made, run.rules().fails_at_once());
        });
  }

 private:
  template <class T>
  static async_generator<T> from_window(async_generator<T> in, detail::window_order order,
                                        detail::choice_log made, bool fails_at_once);

  shuffle_options options_;
};

// Yields the items in random order. The order depends on the seed, on the number of items, and on
// the run's epoch; in a repeat, also on the round. So two sources with the same number of items and
// equal seeds have the same order, as a zip of them needs. The sources of a merge should have
// different seeds.
//
// Items that are reached by index (lists, file listings) are permuted as a whole, in constant
// memory. Each item of a stream is chosen from a window of the next ones. If the stream fails, the
// items in the window are delivered before the failure, unless a later stage would drop a short
// batch: see batch().
//
// A run that resumes from a state makes the same choices. The exception is a state merged from
// several ranks: windows then start empty. The state lists the items in the window, in about 20
// bytes each.
//
// Throws error(invalid_argument) if the window is invalid.
inline shuffle_stage shuffle(const shuffle_options& options = {}) { return shuffle_stage(options); }

template <class T>
async_generator<T> shuffle_stage::from_window(async_generator<T> in, detail::window_order order,
                                              detail::choice_log made, bool fails_at_once) {
  std::vector<held<T>> items;  // items in the slots of the window
  std::exception_ptr failure;
  auto before = order.replay(made.before());
  std::map<std::uint64_t, held<T>> again;  // items consumed but not delivered before, by number
  for (auto number : order.undelivered(before)) {
    auto* item = co_await in.next().apart().deferring(failure);
    if (!item) break;
    again.emplace(number, held<T>(std::move(*item), in.origin()));
  }
  for (auto& choice : before) {
    auto item = again.extract(choice.number);
    if (item.empty()) continue;
    made.note(choice.step, item.mapped().origin());
    co_yield std::move(item.mapped());
  }
  order.keep([&](std::uint64_t number) {
    auto item = again.extract(number);
    if (!item.empty()) items.push_back(std::move(item.mapped()));
    return !item.empty();
  });
  for (bool more = true; more || !items.empty();) {
    while (more && !order.is_full()) {
      auto* item = co_await in.next().apart().deferring(failure);
      more = item;
      if (!item) break;
      order.add();
      items.emplace_back(std::move(*item), in.origin());
    }
    if (!more && !failure) made.record_items(order.taken());
    if (items.empty() || (failure && fails_at_once)) break;
    auto choice = order.pick();
    std::swap(items[choice.slot], items.back());
    auto picked = std::move(items.back());
    items.pop_back();
    made.note(choice.step, picked.origin());
    co_yield std::move(picked);
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace lade
