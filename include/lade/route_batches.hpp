// route_batches: sends each item of a batch down one of several paths, and keeps batches whole.

#pragma once

#include <lade/detail/pipeline/items.hpp>
#include <lade/detail/stages/batch_routing.hpp>
#include <lade/pipeline.hpp>
#include <lade/route.hpp>

#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace lade {

template <class Router, class... Paths>
class route_batches_stage : private detail::route_description<Router, Paths...> {
 public:
  route_batches_stage(Router router, const route_options& options, std::tuple<Paths...> paths)
      : detail::route_description<Router, Paths...>(
            std::move(router),
            detail::route_settings(options,
                                   detail::stage_name<Router>(options.name, "route_batches"),
                                   sizeof...(Paths)),
            std::move(paths)) {}

  template <class T>
  auto attach(const pipeline<std::vector<T>>& in) const {
    auto choose = detail::batch_chooser_for<T>(this->settings(), this->function());
    return this->template attach_as<detail::batch_routing, T>(in, std::move(choose));
  }
};

// Splits each vector into parts, sends the parts down their paths as vectors, and joins the vectors
// that the paths return, starting with path 0. Batches keep their order.
//
//   auto outputs = images | lade::batch(32)
//                | lade::route_batches(kind_of, lade::map(model_a), lade::map(model_b));
//
// `router(item)` returns the number of the item's path, as for `route`. A router may take the batch
// instead, as a const std::vector&. It then returns a range with one path number per item.
//
// Errors: if the router of items throws, or returns an invalid number, the item fails. If a router
// of batches does, or returns another number of paths than items, all items of the batch fail. If
// `on_error` then drops all items of a batch, an empty vector is delivered for it. Options: see
// route().
//
// Only parts that are not empty are sent. For each part, a path must return one vector, with any
// number of items, in the order of the parts. A path that returns more, fewer or reordered vectors
// fails the run.
template <class Router, class... Paths>
route_batches_stage<std::decay_t<Router>, Paths...> route_batches(Router&& router,
                                                                  const route_options& options,
                                                                  Paths... paths) {
  static_assert(sizeof...(Paths) > 0, "lade::route_batches: there must be a path");
  return {std::forward<Router>(router), options, {std::move(paths)...}};
}
template <class Router, class... Paths>
route_batches_stage<std::decay_t<Router>, Paths...> route_batches(Router&& router, Paths... paths) {
  static_assert(sizeof...(Paths) > 0, "lade::route_batches: there must be a path");
  return {std::forward<Router>(router), {}, {std::move(paths)...}};
}

}  // namespace lade
