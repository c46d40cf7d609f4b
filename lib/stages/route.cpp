#include <lade/detail/common/require.hpp>
#include <lade/route.hpp>

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

}  // namespace lade::detail
