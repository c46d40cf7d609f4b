// bucket: batches of items of similar length.

#pragma once

#include <lade/async_generator.hpp>
#include <lade/detail/common/shared_const.hpp>
#include <lade/detail/pipeline/items.hpp>
#include <lade/detail/pipeline/run_state.hpp>
#include <lade/detail/stages/concurrent.hpp>
#include <lade/error.hpp>
#include <lade/pipeline.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace lade {

// With GCC 12, do not write these options in braces inside a co_await expression: they hold more
// than numbers.
struct bucket_options {
  // The maximum length of each bucket, ascending. Longer items are in one further bucket. Without
  // boundaries there is one bucket for all items.
  std::vector<std::size_t> boundaries = {};

  // The limits of a batch; at least one must be set.
  // - `size`: the maximum number of items, from 1 to 1,073,741,824.
  // - `padded`: the maximum number of elements after all items are padded to the longest: the
  //   number of items times the length of the longest. From 1 to 2^48.
  std::size_t size = ~std::size_t{0};
  std::size_t padded = ~std::size_t{0};

  bool drop_last = false;  // whether to drop the items that are in the buckets at the end

  // Policy for items whose length cannot be determined; see failure.hpp.
  std::optional<lade::on_error> on_error = {};  // default: the run's
  lade::error_budget error_budget = {};
  std::string_view name = {};  // name in statistics and errors
};

namespace detail {

// Throws error(invalid_argument) if an option is invalid.
void require_buckets(const bucket_options& options, const std::string& stage);

node_facts bucket_facts(node_ptr in, const bucket_options& options, const std::string& stage);

// Whether `items` items, the longest of length `longest`, exceed the limits of a batch.
bool exceeds(const bucket_options& options, std::size_t items, std::size_t longest) noexcept;

// The items of a bucket that wait until they form a batch.
template <class T>
struct open_bucket {
  std::vector<T> items;
  lineage origin;
  std::size_t longest = 0;

  void add(T&& item, const lineage& from, std::size_t length) {
    items.push_back(std::move(item));
    origin.merge(from);
    longest = std::max(longest, length);
  }
};

}  // namespace detail

template <class F>
class bucket_stage {
 public:
  bucket_stage(F length, const bucket_options& options)
      : length_(std::move(length)),
        options_(options),
        name_(detail::stage_name<F>(options.name, "bucket")) {
    detail::require_buckets(options, name_);
  }

  template <class T>
  pipeline<std::vector<T>> attach(const pipeline<T>& in) const {
    static_assert(
        requires(const F& length, const T& item) {
          { std::invoke(length, item) } -> std::integral;
        },
        "lade::bucket: the length must take the stage's item by const reference or value, return "
        "an integer, and be callable as const: not a mutable lambda, not one that takes T&");
    return detail::make_pipeline<std::vector<T>>(
        detail::bucket_facts(in.last(), options_, name_),
        [in, self = *this](const detail::open_context& run) {
          auto& counters = run.add_stage();
          return collect(in.open(run), self, run, counters);
        });
  }

 private:
  template <class T>
  static async_generator<std::vector<T>> collect(async_generator<T> in, bucket_stage self,
                                                 detail::open_context run,
                                                 detail::stage_counters& counters) {
    std::vector<detail::open_bucket<T>> buckets(self.options_.boundaries.size() + 1);
    std::exception_ptr failure;
    while (auto* item = co_await in.next().apart().deferring(failure)) {
      detail::increment(counters.in);
      if (run.run->failures().is_behind()) co_await run.run->failures().caught_up();
      auto length = self.length_of(*item, in.origin(), run, counters, failure);
      if (failure) break;
      if (!length) {
        co_await detail::consume(in.origin());
        continue;
      }
      auto& bucket = buckets[self.bucket_for(*length)];
      auto longest = std::max(bucket.longest, *length);
      if (!bucket.items.empty() && self.overfull(bucket.items.size() + 1, longest)) {
        auto full = std::exchange(bucket, {});
        detail::count_out(counters, full.items);
        detail::with_lineage<std::vector<T>> yielded{full.origin, full.items};
        co_yield yielded;
      }
      bucket.add(std::move(*item), in.origin(), *length);
      if (!self.overfull(bucket.items.size() + 1, bucket.longest)) continue;
      auto full = std::exchange(bucket, {});
      detail::count_out(counters, full.items);
      detail::with_lineage<std::vector<T>> yielded{full.origin, full.items};
      co_yield yielded;
    }
    if (self.options_.drop_last || (failure && run.rules().fails_at_once())) buckets.clear();
    for (auto& rest : buckets) {
      if (rest.items.empty()) continue;
      detail::count_out(counters, rest.items);
      detail::with_lineage<std::vector<T>> yielded{rest.origin, rest.items};
      co_yield yielded;
    }
    if (failure) std::rethrow_exception(failure);
  }

  // Returns nothing if the length of the item cannot be determined. Then sets `failure`, unless the
  // policy drops the item.
  template <class T>
  std::optional<std::size_t> length_of(const T& item, const lineage& origin,
                                       const detail::open_context& run,
                                       detail::stage_counters& counters,
                                       std::exception_ptr& failure) const {
    try {
      auto length = std::invoke(*length_, item);
      if (std::cmp_less(length, 0)) throw error(errc::invalid_data, "bucket", "a length below 0");
      return static_cast<std::size_t>(length);
    } catch (...) {
      failure = run.failure(counters, policy(), detail::name_of(item), origin);
      return std::nullopt;
    }
  }

  std::size_t bucket_for(std::size_t length) const {
    auto& ends = options_.boundaries;
    return static_cast<std::size_t>(std::ranges::lower_bound(ends, length) - ends.begin());
  }

  bool overfull(std::size_t items, std::size_t longest) const noexcept {
    return detail::exceeds(options_, items, longest);
  }

  detail::failure_policy policy() const {
    return {.finally = options_.on_error, .budget = options_.error_budget};
  }

  detail::shared_const<F> length_;
  bucket_options options_;
  std::string name_;
};

// Collects items of the same bucket in a std::vector. `length(item)` returns the length of an item,
// an integer of 0 or more. A batch is yielded as soon as it cannot hold one more item of its
// bucket. An item that alone exceeds `padded` forms a batch of one. At the end, the buckets yield
// the items that they hold, from the shortest bucket to the longest.
//
// A run that resumes from a state starts with empty buckets. It still delivers every item once, but
// the batches differ from those of an uninterrupted run.
//
// Thread: `length` runs inline: on the thread of the next stage (of the CPU pool) when that
// requests a batch. Several runs may call it at a time.
//
// Throws error(invalid_argument) that names the option if an option is invalid, if the boundaries
// do not ascend, or if neither `size` nor `padded` is set.
template <class F>
bucket_stage<std::decay_t<F>> bucket(F&& length, const bucket_options& options) {
  return {std::forward<F>(length), options};
}

}  // namespace lade
