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

// `name` and `identity`: those of from_options.
template <class T, class Make>
pipeline<T> make_source(const std::string& name, const std::string& identity, Make make) {
  return make_pipeline<T>(node_facts::source(name),
                          [identity, make = std::move(make)](const open_context& run) {
                            auto& counters = run.add_stage(0);
                            run.progress().announce(0, 1);
                            return number_items<T>(begin_with(make, run, counters), run, counters,
                                                   open_input(run.run), {.identity = identity});
                          });
}

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

}  // namespace lade::detail
