// filter: fewer items.

#pragma once

#include <lade/detail/items.hpp>
#include <lade/detail/shared_const.hpp>
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

// As those of map.
struct filter_options {
  unsigned concurrency = 1;  // for predicates that compute much; 0: that of the CPU pool
  lade::item_order order = item_order::input;
  lade::retry retry = {};
  std::optional<lade::on_error> on_error = {};  // the run's if not given
  lade::error_budget error_budget = {};
  std::chrono::nanoseconds timeout = {};
  std::chrono::nanoseconds deadline = {};
  thread_pool* pool = nullptr;
  std::string_view name = {};  // in statistics and errors
};

namespace detail {

// The function of a map that drops items.
template <class F>
class keep_if {
 public:
  explicit keep_if(shared_const<F> predicate) : predicate_(std::move(predicate)) {}

  template <class T>
  std::optional<T> operator()(T&& item) const {
    if (!std::invoke(*predicate_, std::as_const(item))) return std::nullopt;
    return std::move(item);
  }

 private:
  shared_const<F> predicate_;
};

}  // namespace detail

template <class F>
class filter_stage {
 public:
  filter_stage(F predicate, const filter_options& options)
      : predicate_(std::move(predicate)),
        options_(options),
        name_(detail::stage_name<F>(options.name, "filter")) {
    detail::require_map(name_, as_map());
  }

  template <class T>
    requires std::predicate<const F&, const T&>
  pipeline<T> attach(const pipeline<T>& in) const {
    return lade::map(detail::keep_if<F>(predicate_), as_map()).attach(in);
  }

 private:
  map_options as_map() const {
    return {.concurrency = options_.concurrency,
            .order = options_.order,
            .retry = options_.retry,
            .on_error = options_.on_error,
            .error_budget = options_.error_budget,
            .timeout = options_.timeout,
            .deadline = options_.deadline,
            .pool = options_.pool,
            .name = name_};
  }

  detail::shared_const<F> predicate_;
  filter_options options_;
  std::string name_;
};

// Keeps the items for which `predicate(item)` is true. Called when the next stage asks for an item,
// on that stage's thread of the CPU pool, unless the options say otherwise. Throws
// error(invalid_argument) that names the option for one that cannot work.
template <class F>
filter_stage<std::decay_t<F>> filter(F&& predicate, const filter_options& options = {}) {
  return {std::forward<F>(predicate), options};
}

}  // namespace lade
