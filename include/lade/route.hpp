// route: sends each item down one of several paths.

#pragma once

#include <lade/detail/pipeline/items.hpp>
#include <lade/detail/stages/routing.hpp>
#include <lade/failure.hpp>
#include <lade/pipeline.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

namespace lade {

struct route_options {
  // How many items may wait before each path, up to 1,048,576; 0 counts as 1. A slow path may use
  // the free capacity of the others. If the next item is for a path before which `buffer` items
  // wait, and `buffer` times the number of paths wait before all paths together, the route
  // suspends. Meanwhile no path receives items, even if it is idle.
  //
  // For route_batches: how many batches may be in flight.
  std::size_t buffer = 16;

  // Two limits in bytes: of the items that wait before each path, and of the results that wait
  // behind all paths, which each path may exceed by one. One item may always wait, and the next one
  // counts as the largest so far. For the bytes of an item see cache().
  //
  // route_batches refuses it: `buffer` bounds its batches.
  std::uint64_t buffer_bytes = ~std::uint64_t{0};  // no limit

  // Policy for an item if the router throws or returns an invalid path number.
  std::optional<lade::on_error> on_error = {};  // default: the run's
  lade::error_budget error_budget = {};

  std::string_view name = {};  // stage name in statistics and errors
};

template <class Router, class... Paths>
class route_stage : private detail::route_description<Router, Paths...> {
 public:
  route_stage(Router router, const route_options& options, std::tuple<Paths...> paths)
      : detail::route_description<Router, Paths...>(
            std::move(router),
            detail::route_settings(options, detail::stage_name<Router>(options.name, "route"),
                                   sizeof...(Paths)),
            std::move(paths)) {}

  template <class T>
  auto attach(const pipeline<T>& in) const {
    auto choose = detail::chooser_for<T>(this->settings(), this->function());
    return this->template attach_as<detail::routing, T>(in, std::move(choose));
  }
};

// Sends every item down one of several paths. `router(item)` returns the path's number, from 0:
//
//   auto decoded = files | lade::route(kind_of, lade::map(decode_jpeg),
//                                      lade::chain(lade::map(read_raw), lade::map(develop)));
//
// A path is a stage or a chain of stages, which may contain another route. All paths must end in
// items of one type. A path may drop or add items. Items for a path that has ended early (by a take
// in it) are dropped; from then on, run::state() throws.
//
// Order: paths work concurrently. Results keep the order within a path, but not between paths.
//
// Thread: the router is called on the CPU pool for each item as it arrives, one call at a time. It
// may return a task of the number, which also runs on the CPU pool. The task should be short,
// because it is awaited before the next item is routed.
//
// Errors: if the router throws, or returns an invalid path number, the item fails, and `on_error`
// applies. route() throws error(invalid_argument) that names the stage and the option if an option
// is invalid.
template <class Router, class... Paths>
route_stage<std::decay_t<Router>, Paths...> route(Router&& router, const route_options& options,
                                                  Paths... paths) {
  static_assert(sizeof...(Paths) > 0, "lade::route: there must be a path");
  return {std::forward<Router>(router), options, {std::move(paths)...}};
}
template <class Router, class... Paths>
route_stage<std::decay_t<Router>, Paths...> route(Router&& router, Paths... paths) {
  static_assert(sizeof...(Paths) > 0, "lade::route: there must be a path");
  return {std::forward<Router>(router), {}, {std::move(paths)...}};
}

}  // namespace lade
