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
  // From the first item of a window to that of the next: 1 to 1,073,741,824.
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
          auto& counters = run.add_stage("window");
          if (self.step_ >= self.size_) return apart(in.open(run), self, run, counters);
          return overlapping(in.open(run), self, run, counters);
        });
  }

 private:
  detail::node_facts facts(detail::node_ptr in) const;

  // Windows that share no items. One is given when all items up to the next have been seen, so
  // that the rest of a run always begins with a window.
  template <class T>
  static async_generator<std::vector<T>> apart(async_generator<T> in, window_stage self,
                                               detail::open_context run,
                                               detail::stage_counters& counters) {
    std::vector<T> items;
    std::size_t seen = 0;
    std::exception_ptr failure;
    while (auto* item = co_await in.next().deferring(failure)) {
      detail::bump(counters.in);
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
      detail::bump(counters.in);
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

  // Throws error(invalid_argument) if items must be copied because windows overlap.
  void require_no_copies() const;

  std::size_t size_;
  std::size_t step_;
};

// Every `size` consecutive items as a std::vector: those from the first on, those from `step` items
// later on, and so forth. A rest that does not fill a window is left out.
//
// Windows that overlap hold copies, and have no state: what is left of their items depends on the
// windows before. With a step of `size` or more, an item is in one window or in none, and counts to
// the window before if it is in none. Throws error(invalid_argument) for a size that is not from 1
// to 1,073,741,824, for such a step, or if items would have to be copied and cannot be.
inline window_stage window(std::size_t size, const window_options& options = {}) {
  return {size, options};
}

}  // namespace lade
