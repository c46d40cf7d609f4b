// shuffle: another order in every epoch.

#pragma once

#include <lade/async_generator.hpp>
#include <lade/detail/items.hpp>
#include <lade/detail/require.hpp>
#include <lade/pipeline.hpp>
#include <lade/random.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <utility>
#include <vector>

namespace lade {

struct shuffle_options {
  std::uint64_t seed = 0;

  // For items that come one by one: how many are held to choose the next one from; 1 to
  // 1,073,741,824.
  std::size_t window = 1024;
};

class shuffle_stage {
 public:
  explicit shuffle_stage(const shuffle_options& options) : options_(options) {
    detail::require_count("shuffle", "window", options.window,
                          {.least = 1, .most = detail::most_items});
  }

  template <class T>
  pipeline<T> attach(const pipeline<T>& in) const {
    if (auto ordered = in.then(detail::shuffle_step{options_.seed})) return *ordered;
    return detail::make_pipeline<T>(
        in.length() + 1, [in, options = options_](const detail::opening& run) {
          random draw(options.seed, run.round());
          return from_window(in.open(run.reordering("shuffle")), options.window, draw);
        });
  }

 private:
  template <class T>
  static async_generator<T> from_window(async_generator<T> in, std::size_t window, random draw);

  shuffle_options options_;
};

// Gives the items in random order, which depends on the seed and the run's epoch. Items reached by
// index (lists, file listings) are permuted as a whole, in constant memory; of items that come
// one by one, each is chosen from a window of the next ones. Throws error(invalid_argument) for a
// window that cannot work.
inline shuffle_stage shuffle(const shuffle_options& options = {}) { return shuffle_stage(options); }

template <class T>
async_generator<T> shuffle_stage::from_window(async_generator<T> in, std::size_t window,
                                              random draw) {
  std::vector<detail::held_item<T>> items;
  auto pick = [&] {
    std::swap(items[draw.below(items.size())], items.back());
    auto picked = std::move(items.back());
    items.pop_back();
    return picked;
  };
  std::exception_ptr failure;
  while (auto item = co_await in.next().apart().deferring(failure)) {
    items.emplace_back(std::move(*item), in.origin());
    if (items.size() < window) continue;
    auto picked = pick();
    detail::with_lineage<T> yielded{picked.origin, picked.item};
    co_yield yielded;
  }
  while (!items.empty()) {
    auto picked = pick();
    detail::with_lineage<T> yielded{picked.origin, picked.item};
    co_yield yielded;
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace lade
