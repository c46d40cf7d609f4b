// window: overlapping vectors of consecutive items.

#pragma once

#include <lade/async_generator.hpp>
#include <lade/detail/pipeline/items.hpp>
#include <lade/detail/pipeline/run_state.hpp>
#include <lade/pipeline.hpp>

#include <concepts>
#include <cstddef>
#include <deque>
#include <exception>
#include <utility>
#include <vector>

namespace lade {

struct window_options {
  // The number of items from the start of one window to the start of the next: 1 to 1,073,741,824.
  std::size_t step = 1;
};

class window_stage {
 public:
  window_stage(std::size_t size, const window_options& options);

  template <class T>
  pipeline<std::vector<T>> attach(const pipeline<T>& in) const {
    if (!std::copyable<T>) require_no_copies();
    return detail::make_pipeline<std::vector<T>>(
        facts(in.last()), [in, self = *this](const detail::open_context& run) {
          auto& counters = run.add_stage();
          if (self.step_ >= self.size_) return apart(in.open(run), self, run, counters);
          return overlapping(in.open(run), self, run, counters);
        });
  }

 private:
  detail::node_facts facts(detail::node_ptr in) const;

  // Yields windows that share no items. A window is yielded when all items before the next window
  // have been consumed. So a run that resumes from a state always starts with a window.
  template <class T>
  static async_generator<std::vector<T>> apart(async_generator<T> in, window_stage self,
                                               detail::open_context run,
                                               detail::stage_counters& counters) {
    std::vector<T> items;
    std::size_t seen = 0;
    std::exception_ptr failure;
    while (auto* item = co_await in.next().deferring(failure)) {
      detail::increment(counters.in);
      if (items.size() < self.size_) {
        auto keep = [&] { items.push_back(std::move(*item)); };
        detail::handle(*item, in.origin(), run, counters, keep);
      }
      if (++seen < self.step_) continue;
      detail::count_out(counters, items);
      co_yield items;
      items.clear();
      seen = 0;
    }
    if (!failure && items.size() == self.size_) {
      detail::count_out(counters, items);
      co_yield items;
    }
    if (failure) std::rethrow_exception(failure);
  }

  template <class T>
  static async_generator<std::vector<T>> overlapping(async_generator<T> in, window_stage self,
                                                     detail::open_context run,
                                                     detail::stage_counters& counters) {
    std::deque<detail::held_item<T>> held;
    while (auto* item = co_await in.next().apart()) {
      detail::increment(counters.in);
      auto keep = [&] { held.emplace_back(std::move(*item), in.origin()); };
      detail::handle(*item, in.origin(), run, counters, keep);
      if (held.size() < self.size_) continue;
      std::vector<T> items;
      lineage origin;
      if constexpr (std::copyable<T>)
        for (auto& each : held) {
          auto copy = [&] { items.push_back(each.item); };
          detail::handle(each.item, each.origin, run, counters, copy);
          origin.merge(each.origin);
        }
      held.erase(held.begin(), held.begin() + static_cast<std::ptrdiff_t>(self.step_));
      detail::count_out(counters, items);
      detail::with_lineage<std::vector<T>> yielded{origin, items};
      co_yield yielded;
    }
  }

  // For items that cannot be copied: throws error(invalid_argument) if windows overlap.
  void require_no_copies() const;

  std::size_t size_;
  std::size_t step_;
};

// Yields windows: std::vectors of `size` consecutive items. The first window starts at the first
// item, each further window `step` items later. Items at the end that do not fill a window are
// dropped.
//
// With a step below `size`, windows overlap. They hold copies of the items, and the run has no
// state (no checkpoint), because an item belongs to several windows. With a step of `size` or more,
// an item is in at most one window. For the state, an item in no window counts as part of the
// window before.
//
// Throws error(invalid_argument) if `size` or `step` is not from 1 to 1,073,741,824, or if windows
// overlap and the items cannot be copied.
inline window_stage window(std::size_t size, const window_options& options = {}) {
  return {size, options};
}

}  // namespace lade
