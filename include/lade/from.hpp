// Sources: the first step of a pipeline, which yields its items.

#pragma once

#include <lade/async_generator.hpp>
#include <lade/detail/common/shared_const.hpp>
#include <lade/detail/pipeline/index.hpp>
#include <lade/detail/pipeline/items.hpp>
#include <lade/detail/pipeline/progress.hpp>
#include <lade/detail/pipeline/run_state.hpp>
#include <lade/held.hpp>
#include <lade/lineage.hpp>
#include <lade/pipeline.hpp>
#include <lade/task.hpp>

#include <concepts>
#include <cstdint>
#include <exception>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <ranges>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace lade {

namespace detail {

// How number_items() numbers the items of a stream.
template <class T>
struct numbering {
  stretch wanted = {};                  // indices of the items to yield
  std::vector<std::string> order = {};  // steps of the order, as texts for states
  std::string identity = {};            // identity of the data set

  // The name of an item of a listing. Without an `identity`, states identify a listing by the names
  // of its items.
  std::function<std::string(const T&)> identity_of = nullptr;
};

// Yields the items of a stretch of a source with their positions. Its exceptions name the source.
// If a run resumes from a state of a listing, the generator first compares the names of the items
// with those of the state. Until then it holds all items back.
template <class T>
async_generator<T> number_items(async_generator<T> items, open_context run,
                                stage_counters& counters, open_input input, numbering<T> how) {
  std::vector<held<T>> waiting;
  try {
    auto& progress = run.progress();
    progress.begin(assignment{
        .begin = run.pass->first, .order = std::move(how.order), .identity = how.identity});
    if (!how.identity.empty()) how.identity_of = nullptr;
    listing_log listing(progress, run.pass->first, how.identity_of != nullptr);
    std::uint64_t i = 0;
    for (; i < how.wanted.end; ++i) {
      auto item = co_await items.next();
      if (!item) break;
      run.throw_if_stopped(counters);
      require_own_position(i, run);
      if (how.identity_of) listing.add(how.identity_of(*item));
      bool is_left = i >= how.wanted.first && !run.leaves_out(run.pass->first + i);
      if (!listing.is_compared()) {
        if (is_left) waiting.emplace_back(std::move(*item), lineage(run.pass->first + i));
        continue;
      }
      for (auto& each : waiting) {
        count_out(counters, *each);
        co_yield std::move(each);
      }
      waiting.clear();
      if (!is_left) continue;
      count_out(counters, *item);
      positioned<T> yielded{run.pass->first + i, *item};
      co_yield yielded;
    }
    listing.end();
    if (i < how.wanted.end) progress.require_length(run.pass->first, i, run.pass->span);
    input.end();
  } catch (...) {
    std::rethrow_exception(run.failure(counters, {on_error::fail}, {}, {}));
  }
}

// The description of a source whose items are reached by index.
template <class T>
struct indexed_description {
  std::string name;  // name in statistics and errors

  // Returns the complete list; called when a run needs it. Awaited on the CPU pool; may block.
  std::function<task<std::shared_ptr<const item_list<T>>>()> load;

  // Yields the items in the order of the list before the list is complete. Null if the source
  // cannot do so.
  std::function<async_generator<T>()> stream = nullptr;

  std::string identity = {};  // identity of the data set, as in numbering
  std::function<std::string(const T&)> identity_of = nullptr;

  std::optional<std::uint64_t> size = {};  // size of the list, if known before load()
};

// The facts of such a source behind the steps of an order.
node_facts facts_of_list(const std::string& name, std::optional<std::uint64_t> items,
                         const std::vector<order_step>& steps);

// A source whose items are reached by index, in an order: shuffled, drawn, sharded, cut or
// repeated. These steps cost no memory, and the source makes only items that the run delivers.
template <class T>
class indexed_source final : public node<T> {
 public:
  using description = std::shared_ptr<const indexed_description<T>>;

  explicit indexed_source(description what, std::vector<order_step> steps = {})
      : node<T>(facts_of_list(what->name, what->size, steps)),
        what_(std::move(what)),
        steps_(std::move(steps)) {}

  async_generator<T> open(const open_context& run) const override {
    auto& counters = run.add_stage(what_->name, 0);
    run.depends_on_epoch(steps_);
    auto part = part_of(steps_);
    run.progress().announce(part.rank, part.world);
    auto wanted = what_->stream ? stretch_of(steps_) : std::nullopt;
    if (!wanted) return visit(what_, steps_, run, counters, open_input(run.run));
    return number_items<T>(begin_with(what_->stream, run, counters), run, counters,
                           open_input(run.run),
                           {*wanted, texts_of(steps_), what_->identity, what_->identity_of});
  }

  counted_ptr<const node<T>> then(const order_step& step) const override {
    auto steps = steps_;
    steps.push_back(step);
    return counted_ptr(new indexed_source(what_, std::move(steps)));
  }

 private:
  static async_generator<T> visit(description what, std::vector<order_step> steps, open_context run,
                                  stage_counters& counters, open_input input) {
    lineage position;  // position of the current item
    try {
      auto list = co_await what->load();
      auto order = begin_order(std::move(steps), list->size(), identity_of(*what, *list), run);
      gaps own(run.progress().own_delivered(run.pass->first));
      for (std::uint64_t n = 0; own.at(n) < order.size(); ++n) {
        if (run.run->failures().is_behind()) co_await run.run->failures().room();
        run.throw_if_stopped(counters);
        auto k = own.at(n);
        auto place = order.at(k);
        require_own_position(place.position, run);
        const auto numbered = run.pass->first + place.position;
        if (run.is_kept(numbered)) continue;
        position = lineage(numbered);
        auto item = item_of(*list, place.index, run, counters, position);
        if (!item) {
          co_await consume(position);
          continue;
        }
        count_out(counters, *item);
        with_lineage<T> yielded{position, *item};
        co_yield yielded;
      }
      input.end();
    } catch (...) {
      std::rethrow_exception(run.failure(counters, {on_error::fail}, {}, position));
    }
  }

  static std::string identity_of(const indexed_description<T>& what, const item_list<T>& list) {
    if (!what.identity.empty()) return what.identity;
    if (!what.identity_of) return list.identity();
    name_digest names;
    for (std::uint64_t i = 0; i < list.size(); ++i) names.add(what.identity_of(list.at(i)));
    return names.text();
  }

  // Returns nothing if list.at() throws and the failure policy drops the item.
  static std::optional<T> item_of(const item_list<T>& list, std::uint64_t index,
                                  const open_context& run, stage_counters& counters,
                                  const lineage& position) {
    try {
      return list.at(index);
    } catch (...) {
      auto failure = run.failure(counters, {}, {}, position);
      if (failure) std::rethrow_exception(failure);
      return std::nullopt;
    }
  }

  description what_;
  std::vector<order_step> steps_;
};

template <class T>
task<std::shared_ptr<const item_list<T>>> give_list(std::shared_ptr<const item_list<T>> kept) {
  co_return kept;
}

template <class T>
pipeline<T> make_indexed(indexed_description<T> what) {
  auto kept = std::make_shared<const indexed_description<T>>(std::move(what));
  return pipeline<T>(counted_ptr(new indexed_source<T>(std::move(kept))));
}

}  // namespace detail

struct from_options {
  std::string_view name = "source";  // name in statistics and errors

  // Identifies the data set, such as "questions of May". A run refuses to resume from a state with
  // another identity. If not given, an index source is identified by its identity(), and a listing
  // by the names of its items.
  std::string_view identity = {};
};

// A class of items that are reached by index, such as the records of an indexed file:
//
//   class pages {
//    public:
//     std::uint64_t size() const;            // number of items; never changes
//     page at(std::uint64_t i) const;        // item i, with i < size()
//     std::string identity() const;
//   };
//   auto shuffled = lade::from(pages("book.index")) | lade::shuffle({.seed = 7});
//
// The stages that choose items by index (shuffle, draw, shard, take, skip, repeat) cost nothing
// behind it. A run calls at() for the items that it delivers, and for no others.
//
// Identity: a std::string that is equal for equal items in equal order, in every process. A run
// refuses to resume from a state with another one. If it is empty, states compare only the number
// of items. Every run calls identity() once, on a thread of the CPU pool, so it must not read the
// data. If it throws, the run fails.
//
// Threads: at() is called on a thread of the CPU pool, by several threads at a time if there are
// several runs. It may compute or block briefly. To await something, at() returns a name, and a map
// behind the source reads it.
//
// Errors: if at() throws, the run's on_error decides on the item.
template <class S>
concept index_source = requires(const S& source, std::uint64_t i) {
  { source.size() } -> std::convertible_to<std::uint64_t>;
  { source.identity() } -> std::convertible_to<std::string>;
  source.at(i);
};

// A class of items that are listed, such as the files of a directory:
//
// - `list()` yields the items in their order; each call lists again.
// - `list_all()` returns all items, in a std::vector.
// - `load_all()`, optional: a task that returns the same. A run awaits it instead of list_all(),
//   for listings that wait for a server.
// - `identity_of(item)`, optional: the name of an item, without parts that differ between copies of
//   the data, such as the directory. States identify the listing by the names of its items. By
//   default the name is the item's key(), or the item if it is a text or an integer.
//
// All are called as const, on a thread of the CPU pool, and may block. Their exceptions end the
// run.
template <class S>
concept listing = requires(const S& source) {
  source.list().next();
  { source.list_all() } -> std::ranges::random_access_range;
};

namespace detail {

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

// A function that returns a task of a list.
template <class T>
struct awaited_list;
template <class L>
struct awaited_list<task<L>> {
  using type = L;
};

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

template <class T, class Make>
pipeline<T> make_source(const from_options& options, Make make) {
  return make_pipeline<T>(
      node_facts::source(std::string(options.name)),
      [name = std::string(options.name), identity = std::string(options.identity),
       make = std::move(make)](const open_context& run) {
        auto& counters = run.add_stage(name, 0);
        run.progress().announce(0, 1);
        return number_items<T>(begin_with(make, run, counters), run, counters, open_input(run.run),
                               {.identity = identity});
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

}  // namespace detail

// Returns a pipeline that yields the items of `source`:
// - A vector, span, array or other random-access range. Its items are reached by index, so that
//   shuffle, shard, take, skip and repeat are free.
// - An index source, such as io::token_windows. The same.
// - A listing such as io::files. It yields items while it is being listed, also behind take and
//   skip. If shuffled, drawn, sharded or repeated, it is first listed completely; then its items
//   are reached by index.
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
    return detail::make_source<value>(options, std::move(source));
  } else if constexpr (detail::optional_function<Source>) {
    using value = typename detail::optional_value<std::invoke_result_t<Source&>>::type;
    if constexpr (std::copy_constructible<Source>)
      return detail::make_source<value>(
          options, [source = std::move(source)] { return detail::call_until_empty(source); });
    else
      return detail::make_source<value>(options,
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
          options, [source = std::move(source)] { return detail::each_of<range>(source()); });
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
    static_assert(std::ranges::input_range<Source>,
                  "lade::from: the source must be a range, a function without arguments, an index "
                  "source or a listing; not a C array, which is passed as a pointer");
    using value = std::ranges::range_value_t<Source>;
    if constexpr (std::ranges::input_range<const Source>)
      return detail::make_source<value>(options,
                                        [source = detail::shared_const(std::move(source))] {
                                          return detail::each_of_kept(source);
                                        });
    else
      return detail::make_source<value>(
          options, [source = std::move(source)] { return detail::each_of(source); });
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
