#include <lade/detail/stages/link.hpp>
#include <lade/detail/stages/split.hpp>
#include <lade/error.hpp>
#include <lade/route.hpp>
#include <lade/route_batches.hpp>
#include <lade/support/require.hpp>

#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace lade::detail {

route_settings::route_settings(const route_options& options, std::string stage,
                               std::size_t paths_in_all)
    : name(std::move(stage)),
      paths(paths_in_all),
      buffer(options.buffer),
      buffer_bytes(options.buffer_bytes),
      policy{.finally = options.on_error, .budget = options.error_budget} {
  support::require_count(name, "buffer", options.buffer);
  require_budget(name, options.error_budget, options.on_error);
}

node_facts route_settings::facts(node_ptr in, std::vector<node_ptr> ends) const {
  return node_facts::split_of(std::move(in), std::move(ends), "route", name)
      .reordering("route")
      .holding(split_base::held_apart(paths, buffer) + results().ring.slots)
      .with("buffer", buffer)
      .with_limit("buffer_bytes", buffer_bytes)
      .with(policy);
}

// The queues hold parts of the batches in flight.
node_facts route_settings::facts_for_batches(node_ptr in, std::vector<node_ptr> ends) const {
  if (buffer_bytes != unlimited_bytes)
    throw error(errc::invalid_argument, name, "route_batches has no buffer_bytes; set buffer");
  return node_facts::split_of(std::move(in), std::move(ends), "route_batches", name)
      .mixing_parts("route_batches")
      .joining()
      .holding(split_base::at_least_one(buffer))
      .with("buffer", buffer)
      .with(policy);
}

void refuse_path(const std::string& number, std::size_t paths) {
  throw error(errc::invalid_argument, "choose a path",
              fmt::format("the router returned {}, and there {} {}, numbered from 0", number,
                          paths == 1 ? "is" : "are",
                          paths == 1 ? "1 path" : fmt::format("{} paths", paths)));
}

void require_path_for_each(std::size_t paths, std::size_t items) {
  if (paths != items)
    throw error(errc::invalid_argument, "choose paths",
                fmt::format("the router returned {} for a batch of {} items", paths, items));
}

}  // namespace lade::detail
