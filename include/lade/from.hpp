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
  detail::named_source named{std::string(options.name), std::string(options.identity)};
  if constexpr (detail::list_like<Source>)
    return detail::from_list(std::move(source), std::move(named));
  else if constexpr (listing<Source>)
    return detail::from_listing(std::move(source), std::move(named));
  else if constexpr (detail::generator_function<Source>)
    return detail::from_generators(std::move(source), std::move(named));
  else if constexpr (detail::optional_function<Source>)
    return detail::from_optionals(std::move(source), std::move(named));
  else if constexpr (detail::range_function<Source>)
    return detail::from_ranges(std::move(source), std::move(named));
  else if constexpr (detail::task_function<Source>)
    return detail::from_tasks(std::move(source), std::move(named));
  else
    return detail::from_range(std::move(source), std::move(named));
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
