// index_source, listing: classes of a user that from() takes as a source.

#pragma once

#include <concepts>
#include <cstdint>
#include <ranges>
#include <string>

namespace lade {

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

}  // namespace lade
