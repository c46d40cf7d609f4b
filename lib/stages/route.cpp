#include <lade/detail/common/require.hpp>
#include <lade/error.hpp>
#include <lade/route.hpp>
#include <lade/route_batches.hpp>

#include <string>
#include <utility>

namespace lade::detail {

route_settings::route_settings(const route_options& options, std::string stage,
                               std::size_t paths_in_all)
    : name(std::move(stage)),
      paths(paths_in_all),
      buffer(options.buffer),
      policy{.finally = options.on_error, .budget = options.error_budget} {
  require_count(name, "buffer", options.buffer);
  require_budget(name, options.error_budget);
}

void require_path_for_each(std::size_t paths, std::size_t items) {
  if (paths != items)
    throw error(errc::invalid_argument, "choose paths",
                "the router returned " + std::to_string(paths) + " for a batch of " +
                    std::to_string(items) + " items");
}

}  // namespace lade::detail
