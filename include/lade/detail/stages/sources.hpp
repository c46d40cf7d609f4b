// The kinds of sources that from() takes, and how each is made a source of a pipeline.

#pragma once

#include <lade/async_generator.hpp>
#include <lade/detail/common/shared_const.hpp>
#include <lade/detail/pipeline/items.hpp>
#include <lade/detail/pipeline/run_state.hpp>
#include <lade/detail/stages/indexed_source.hpp>
#include <lade/index_source.hpp>
#include <lade/pipeline.hpp>
#include <lade/task.hpp>

#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <ranges>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace lade::detail {

// The type of the items of an index source.
template <class S>
using indexed_item = std::remove_cvref_t<decltype(std::declval<const S&>().at(std::uint64_t{}))>;

// An index source as a list. Owns the source.
template <index_source S>
class source_list final : public item_list<indexed_item<S>> {
 public:
  explicit source_list(S source) : source_(std::move(source)) {}
  std::uint64_t size() const override { return static_cast<std::uint64_t>(source_.size()); }
  indexed_item<S> at(std::uint64_t i) const override { return source_.at(i); }
  std::string identity() const override { return source_.identity(); }

 private:
  S source_;
};

// A random-access range as a list. Owns the range.
template <class R>
class range_list final : public item_list<std::ranges::range_value_t<R>> {
 public:
  using value = std::ranges::range_value_t<R>;
  explicit range_list(R range) : range_(std::move(range)) {}
  std::uint64_t size() const override { return static_cast<std::uint64_t>(range_.size()); }
  value at(std::uint64_t i) const override {
    return std::ranges::begin(range_)[static_cast<std::ranges::range_difference_t<const R>>(i)];
  }

 private:
  R range_;
};

template <class R>
concept list_range = std::ranges::random_access_range<const R> &&
                     std::ranges::sized_range<const R> && requires(const R& r) { r[0]; };

// The list of an index source or a random-access range, and its values.
template <class L>
struct listed;
template <index_source L>
struct listed<L> {
  static_assert(!std::is_void_v<indexed_item<L>>,
                "lade::from: at(i) of an index source must return the item");
  using value = indexed_item<L>;
  using list = source_list<L>;
};
template <list_range L>
  requires(!index_source<L>)
struct listed<L> {
  using value = std::ranges::range_value_t<L>;
  using list = range_list<L>;
};

template <class L>
concept list_like = index_source<L> || list_range<L>;

template <class L>
using list_value = typename listed<L>::value;

// Loads the complete list of a listing.
template <listing S, class T>
task<std::shared_ptr<const item_list<T>>> load_listing(S source) {
  using list = range_list<std::vector<T>>;
  if constexpr (requires { source.load_all(); }) {
    auto all = co_await source.load_all();
    co_return std::make_shared<const list>(std::move(all));
  } else {
    co_return std::make_shared<const list>(source.list_all());
  }
}

template <list_like L>
task<std::shared_ptr<const item_list<list_value<L>>>> load_list(L given) {
  co_return std::make_shared<const typename listed<L>::list>(std::move(given));
}

template <list_like L>
task<std::shared_ptr<const item_list<list_value<L>>>> await_list(task<L> loading) {
  auto loaded = co_await std::move(loading);
  co_return std::make_shared<const typename listed<L>::list>(std::move(loaded));
}

template <class T>
struct generated;
template <class T>
struct generated<async_generator<T>> {
  using type = T;
};

template <class F>
concept generator_function =
    requires(const F& f) { typename generated<std::invoke_result_t<const F&>>::type; };

template <class T>
struct optional_value;
template <class T>
struct optional_value<std::optional<T>> {
  using type = T;
};

template <class F>
concept optional_function =
    requires(F& f) { typename optional_value<std::invoke_result_t<F&>>::type; };

template <class F>
using result_of = std::remove_cvref_t<std::invoke_result_t<const F&>>;

template <class F>
concept range_function =
    requires { requires std::ranges::input_range<result_of<F>> || list_like<result_of<F>>; };

template <class T>
struct awaited_list;
template <class L>
struct awaited_list<task<L>> {
  using type = L;
};

// A function that returns a task of a list.
template <class F>
concept task_function = requires(const F& f) { typename awaited_list<result_of<F>>::type; };

// A class with at() that lacks another part of an index source, or has a part only without const.
template <class S>
concept unfinished_index_source =
    !std::ranges::input_range<S> && requires(S& source) { source.at(std::uint64_t{}); };

// The same for a listing.
template <class S>
concept unfinished_listing =
    !std::ranges::input_range<S> &&
    (requires(S& source) { source.list(); } || requires(S& source) { source.list_all(); });

// The name of an item of a listing, by which states identify the listing.
template <class Source, class T>
std::string listed_identity(const Source& source, const T& item) {
  if constexpr (requires {
                  { source.identity_of(item) } -> std::convertible_to<std::string>;
                })
    return source.identity_of(item);
  else
    return key_of(item);
}

// The options of from().
struct named_source {
  std::string name;
  std::string identity;
};

template <class R>
async_generator<std::ranges::range_value_t<R>> each_of(R range) {
  for (auto&& element : range) {
    std::ranges::range_value_t<R> item(std::forward<decltype(element)>(element));
    co_yield item;
  }
}

template <class R>
async_generator<std::ranges::range_value_t<const R>> each_of_kept(shared_const<R> range) {
  for (auto&& element : *range) {
    std::ranges::range_value_t<const R> item(std::forward<decltype(element)>(element));
    co_yield item;
  }
}

template <class F>
async_generator<typename optional_value<std::invoke_result_t<F&>>::type> call_until_empty(F f) {
  while (auto item = f()) co_yield *item;
}

template <class F>
async_generator<typename optional_value<std::invoke_result_t<const F&>>::type>
call_kept_until_empty(shared_const<F> f) {
  while (auto item = (*f)()) co_yield *item;
}

template <class T, class Make>
pipeline<T> make_source(named_source named, Make make) {
  auto facts = node_facts::source(named.name);
  return make_pipeline<T>(std::move(facts), [identity = std::move(named.identity),
                                             make = std::move(make)](const open_context& run) {
    auto& counters = run.add_stage(0);
    run.progress().announce(0, 1);
    return number_items<T>(begin_with(make, run, counters), run, counters, open_input(run.run),
                           {.identity = identity});
  });
}

// from() for each kind of source.

template <list_like L>
auto from_list(L source, named_source named) {
  using value = list_value<L>;
  std::shared_ptr<const item_list<value>> kept =
      std::make_shared<const typename listed<L>::list>(std::move(source));
  auto give = [kept] { return give_list<value>(kept); };
  return make_indexed<value>(
      {std::move(named.name), give, nullptr, std::move(named.identity), nullptr, kept->size()});
}

template <listing S>
auto from_listing(S source, named_source named) {
  using value = std::ranges::range_value_t<decltype(source.list_all())>;
  auto load = [source] { return load_listing<S, value>(source); };
  auto list = [source] { return source.list(); };
  auto identity_of = [source](const value& item) { return listed_identity(source, item); };
  return make_indexed<value>(
      {std::move(named.name), load, list, std::move(named.identity), identity_of});
}

template <generator_function F>
auto from_generators(F function, named_source named) {
  using value = typename generated<std::invoke_result_t<const F&>>::type;
  return make_source<value>(std::move(named), std::move(function));
}

template <optional_function F>
auto from_optionals(F function, named_source named) {
  using value = typename optional_value<std::invoke_result_t<F&>>::type;
  if constexpr (std::copy_constructible<F>)
    return make_source<value>(
        std::move(named), [function = std::move(function)] { return call_until_empty(function); });
  else
    return make_source<value>(std::move(named), [function = shared_const(std::move(function))] {
      return call_kept_until_empty(function);
    });
}

template <range_function F>
auto from_ranges(F function, named_source named) {
  using range = result_of<F>;
  if constexpr (list_like<range>) {
    auto load = [function = shared_const(std::move(function))] {
      return load_list<range>((*function)());
    };
    return make_indexed<list_value<range>>(
        {std::move(named.name), load, nullptr, std::move(named.identity)});
  } else {
    return make_source<std::ranges::range_value_t<range>>(
        std::move(named), [function = std::move(function)] { return each_of<range>(function()); });
  }
}

template <task_function F>
auto from_tasks(F function, named_source named) {
  using list = typename awaited_list<result_of<F>>::type;
  static_assert(list_like<list>,
                "lade::from: the task must return a random-access range or an index source");
  auto load = [function = shared_const(std::move(function))] {
    return await_list<list>((*function)());
  };
  return make_indexed<list_value<list>>(
      {std::move(named.name), load, nullptr, std::move(named.identity)});
}

template <class R>
auto from_range(R range, named_source named) {
  static_assert(!unfinished_index_source<R>,
                "lade::from: an index source has size(), at(index) and identity(), which returns a "
                "std::string, and all are callable as const");
  static_assert(!unfinished_listing<R>,
                "lade::from: a listing has list(), which returns a generator, and list_all(), and "
                "both are callable as const");
  static_assert(std::ranges::input_range<R>,
                "lade::from: the source must be a range, an index source, a listing, or a function "
                "without arguments that returns a range, a generator, a task or an optional; not "
                "a generator itself, whose function is passed instead, and not a C array");
  using value = std::ranges::range_value_t<R>;
  if constexpr (std::ranges::input_range<const R>)
    return make_source<value>(
        std::move(named), [range = shared_const(std::move(range))] { return each_of_kept(range); });
  else
    return make_source<value>(std::move(named),
                              [range = std::move(range)] { return each_of(range); });
}

}  // namespace lade::detail
