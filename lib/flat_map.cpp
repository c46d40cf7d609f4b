#include <lade/detail/require.hpp>
#include <lade/flat_map.hpp>

namespace lade::detail {

void require_flat_map(std::string_view stage, const flat_map_options& options) {
  require_count(stage, "concurrency", options.concurrency, {.least = 1});
  require_count(stage, "buffer", options.buffer);
  require_budget(stage, options.error_budget);
}

}  // namespace lade::detail
