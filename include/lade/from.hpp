// Sources: the first step of a pipeline, which yields its items.

#pragma once

#include <lade/detail/common/shared_const.hpp>
#include <lade/detail/stages/indexed_source.hpp>
#include <lade/detail/stages/sources.hpp>
#include <lade/index_source.hpp>

#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <ranges>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace lade {

struct from_options {
  std::string_view name = "source";  // name in statistics and errors

  // Identifies the data set, such as "questions of May". A run refuses to resume from a state with
  // another identity. If not given, an index source is identified by its identity(), and a listing
  // by the names of its items.
  std::string_view identity = {};
};

// Returns a pipeline that yields the items of `source`:
// - A vector, span, array or other random-access range. Its items are reached by index, so that
//   shuffle, shard, take, skip and repeat are free: they only compute which item is next. A
//   std::string is such a range: its items are its characters.
// - An index source (index_source.hpp), such as io::token_windows. The same.
// - A listing (index_source.hpp), such as io::files. It yields items while it is being listed, also
//   behind take and skip. If it is shuffled, drawn, sharded or repeated, it is first listed
//   completely; then its items are reached by index.
// - Any other range. Every run iterates over it from its beginning.
// - A function that returns a range, such as a long listing or a generator. Every run calls it
//   anew. If the range is a random-access range or an index source, its items are reached by index.
// - A function that returns a task of a random-access range or of an index source, which waits for
//   a server, say. Every run calls it and awaits the task on the CPU pool.
// - A function that returns an async_generator. Every run calls it anew.
// - A function that returns a std::optional. A run calls it until it returns an empty one. Every
//   run calls a separate copy, so the function may count. A function that cannot be copied is
//   shared and called as const.
//
// The pipeline owns `source`, and all runs share it, with two exceptions: a copyable function that
// returns optionals, and a range that cannot be iterated as const. Every run copies these.
template <class Source>
auto from(Source source, const from_options& options = {}) {
  std::string name(options.name);
  std::string identity(options.identity);
  if constexpr (detail::list_like<Source>) {
    using value = detail::list_value<Source>;
    std::shared_ptr<const detail::item_list<value>> kept =
        std::make_shared<const typename detail::listed<Source>::list>(std::move(source));
    return detail::make_indexed<value>({name, [kept] { return detail::give_list<value>(kept); },
                                        nullptr, identity, nullptr, kept->size()});
  } else if constexpr (listing<Source>) {
    using value = std::ranges::range_value_t<decltype(source.list_all())>;
    return detail::make_indexed<value>(
        {name, [source] { return detail::load_listing<Source, value>(source); },
         [source] { return source.list(); }, identity,
         [source](const value& item) { return detail::listed_identity(source, item); }});
  } else if constexpr (detail::generator_function<Source>) {
    using value = typename detail::generated<std::invoke_result_t<const Source&>>::type;
    return detail::make_source<value>(name, identity, std::move(source));
  } else if constexpr (detail::optional_function<Source>) {
    using value = typename detail::optional_value<std::invoke_result_t<Source&>>::type;
    if constexpr (std::copy_constructible<Source>)
      return detail::make_source<value>(name, identity, [source = std::move(source)] {
        return detail::call_until_empty(source);
      });
    else
      return detail::make_source<value>(name, identity,
                                        [source = detail::shared_const(std::move(source))] {
                                          return detail::call_kept_until_empty(source);
                                        });
  } else if constexpr (detail::range_function<Source>) {
    using range = detail::result_of<Source>;
    if constexpr (detail::list_like<range>)
      return detail::make_indexed<detail::list_value<range>>(
          {name,
           [source = detail::shared_const(std::move(source))] {
             return detail::load_list<range>((*source)());
           },
           nullptr, identity});
    else
      return detail::make_source<std::ranges::range_value_t<range>>(
          name, identity,
          [source = std::move(source)] { return detail::each_of<range>(source()); });
  } else if constexpr (detail::task_function<Source>) {
    using list = typename detail::awaited_list<detail::result_of<Source>>::type;
    static_assert(detail::list_like<list>,
                  "lade::from: the task must return a random-access range or an index source");
    return detail::make_indexed<detail::list_value<list>>(
        {name,
         [source = detail::shared_const(std::move(source))] {
           return detail::await_list<list>((*source)());
         },
         nullptr, identity});
  } else {
    static_assert(
        !detail::unfinished_index_source<Source>,
        "lade::from: an index source has size(), at(index) and identity(), which returns a "
        "std::string, and all are callable as const");
    static_assert(
        !detail::unfinished_listing<Source>,
        "lade::from: a listing has list(), which returns a generator, and list_all(), and "
        "both are callable as const");
    static_assert(
        std::ranges::input_range<Source>,
        "lade::from: the source must be a range, an index source, a listing, or a function "
        "without arguments that returns a range, a generator, a task or an optional; not "
        "a generator itself, whose function is passed instead, and not a C array");
    using value = std::ranges::range_value_t<Source>;
    if constexpr (std::ranges::input_range<const Source>)
      return detail::make_source<value>(name, identity,
                                        [source = detail::shared_const(std::move(source))] {
                                          return detail::each_of_kept(source);
                                        });
    else
      return detail::make_source<value>(
          name, identity, [source = std::move(source)] { return detail::each_of(source); });
  }
}

// Returns a pipeline that yields function(0), function(1), ..., function(size - 1), reached by
// index. With std::identity(), the items are the indices themselves. If the function throws, the
// run's on_error decides on the item.
template <class F>
auto from_index(std::uint64_t size, F function, const from_options& options = {}) {
  static_assert(std::is_invocable_v<const F&, std::uint64_t>,
                "lade::from_index: the function must take the index, return the item, and be "
                "callable as const: not a mutable lambda");
  using value = std::decay_t<std::invoke_result_t<const F&, std::uint64_t>>;
  class list final : public detail::item_list<value> {
   public:
    list(std::uint64_t items, F item) : size_(items), function_(std::move(item)) {}
    std::uint64_t size() const override { return size_; }
    value at(std::uint64_t i) const override { return std::invoke(function_, i); }

   private:
    std::uint64_t size_;
    F function_;
  };
  std::shared_ptr<const detail::item_list<value>> kept =
      std::make_shared<const list>(size, std::move(function));
  return detail::make_indexed<value>({std::string(options.name),
                                      [kept] { return detail::give_list<value>(kept); }, nullptr,
                                      std::string(options.identity), nullptr, size});
}

}  // namespace lade
