// filter: keeps the items that satisfy a predicate.

#pragma once

#include <lade/detail/common/shared_const.hpp>
#include <lade/detail/pipeline/items.hpp>
#include <lade/failure.hpp>
#include <lade/map.hpp>
#include <lade/pipeline.hpp>
#include <lade/thread_pool.hpp>

#include <chrono>
#include <concepts>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace lade {

// As in map_options.
struct filter_options {
  unsigned concurrency = 1;  // raise it for slow predicates; 0: that of the CPU pool
  lade::item_order order = item_order::input;
  lade::retry retry = {};
  std::optional<lade::on_error> on_error = {};  // default: the run's
  lade::error_budget error_budget = {};
  std::chrono::nanoseconds timeout = {};
  std::chrono::nanoseconds deadline = {};
  thread_pool* pool = nullptr;
  std::string_view name = {};  // name in statistics and errors
};

namespace detail {

// The function of a map that drops the items for which the predicate returns false.
template <class F>
class keep_if {
 public:
  explicit keep_if(F predicate) : predicate_(std::move(predicate)) {}

  template <class T>
  std::optional<T> operator()(T&& item) const {
    if (!std::invoke(predicate_, std::as_const(item))) return std::nullopt;
    return std::move(item);
  }

 private:
  F predicate_;
};

// Throws error(invalid_argument) that names the stage and the option if an option is invalid.
map_settings settings_of(const filter_options& options, std::string name);

}  // namespace detail

template <class F>
class filter_stage {
 public:
  filter_stage(F predicate, const filter_options& options)
      : function_(detail::keep_if<F>(std::move(predicate))),
        settings_(detail::settings_of(options, detail::stage_name<F>(options.name, "filter"))) {}

  template <class T>
  pipeline<T> attach(const pipeline<T>& in) const {
    constexpr bool fits = std::predicate<const F&, const T&>;
    static_assert(fits,
                  "lade::filter: the predicate must take the stage's item, by value or const "
                  "reference, return a bool, and be callable as const: not a mutable lambda, not "
                  "one that takes T&");
    if constexpr (fits)
      return detail::attach_map(in, settings_, function_, "filter");
    else
      return in;
  }

 private:
  detail::shared_const<detail::keep_if<F>> function_;
  detail::shared_const<detail::map_settings> settings_;
};

// Yields the items for which `predicate(item)` returns true. By default, the predicate runs inline:
// on the thread of the next stage (of the CPU pool) when that requests an item. Throws
// error(invalid_argument) that names the option if an option is invalid.
template <class F>
filter_stage<std::decay_t<F>> filter(F&& predicate, const filter_options& options = {}) {
  return {std::forward<F>(predicate), options};
}

}  // namespace lade
