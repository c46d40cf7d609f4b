// tee: sends each item down all of several paths.

#pragma once

#include <lade/detail/stages/split.hpp>
#include <lade/detail/stages/tee_core.hpp>
#include <lade/pipeline.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <tuple>
#include <utility>

namespace lade {

struct tee_options {
  // Two limits of each path, up to 1,048,576; 0 counts as 1:
  // - the items that may wait before the path,
  // - the results of the path that may wait for results of other paths.
  //
  // So a path may be up to `buffer` results ahead of another.
  std::size_t buffer = 16;

  // The same two limits in bytes. One item or result may always wait, and the next one counts as
  // the largest so far. For the bytes of an item see cache().
  std::uint64_t buffer_bytes = ~std::uint64_t{0};  // no limit

  std::string_view name = {};  // stage name in statistics and errors
};

template <class... Paths>
class tee_stage {
 public:
  tee_stage(const tee_options& options, std::tuple<Paths...> paths)
      : core_(options), paths_(std::move(paths)) {}

  template <class T>
  auto attach(const pipeline<T>& in) const {
    static_assert(std::copy_constructible<T>, "lade::tee: items must be copyable");
    return core_.attach(in, detail::attach_paths(paths_, in, in.last()->facts().size()));
  }

 private:
  detail::tee_core core_;
  std::tuple<Paths...> paths_;
};

// Sends every item down all of several paths. Yields tuples with one result of each path, until a
// path ends:
//
//   auto pairs = images | lade::tee(lade::map(crop), lade::map(describe));
//
// A path is a stage or a chain of stages, which may contain another tee. Paths work concurrently,
// on copies of the item. The n-th tuple holds the n-th result of each path. The results of a tuple
// are taken in the order of the paths, and dropped if a later path has ended. So let a path that
// may end early, such as one with a take(), be the first: the tee then ends without the others'
// results.
//
// Memory: copies of buffers, samples and tensors share their memory, which all paths use at the
// same time. So no function in a path may write to the memory of an item that it takes. A function
// that changes pixels must write them to a new tensor.
//
// Deadlock: a path that takes more items than another for a result (a filter, a batch) makes the
// results of the other path wait. All paths must take as many items as each other in the long run.
// A path may be behind by n items for a while if `buffer` is n or more, and `buffer_bytes` enough
// for n results of the other path. The run fails with a message that names both paths if all of
// this is true:
// - `buffer` results of one path, or as many as fit into `buffer_bytes`, wait for a result of the
//   other path.
// - The other path waits for an item.
// - No item is in flight in the other path, and no coroutine that its stages started in a scope is
//   alive (scope.hpp). The library cannot know what such a coroutine waits for.
//
// So a slow path is waited for. The wait is endless if a zip in the path holds items of another
// source meanwhile.
template <class... Paths>
tee_stage<Paths...> tee(const tee_options& options, Paths... paths) {
  static_assert(sizeof...(Paths) > 0, "lade::tee: there must be a path");
  return {options, {std::move(paths)...}};
}
template <class... Paths>
tee_stage<Paths...> tee(Paths... paths) {
  static_assert(sizeof...(Paths) > 0, "lade::tee: there must be a path");
  return {{}, {std::move(paths)...}};
}

}  // namespace lade
