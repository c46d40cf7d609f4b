#include <lade/detail/require.hpp>
#include <lade/flat_map.hpp>

namespace lade::detail {

flat_map_settings::flat_map_settings(const flat_map_options& given, std::string stage)
    : options(given), name(std::move(stage)) {
  require_count(name, "concurrency", options.concurrency, {.least = 1});
  require_count(name, "buffer", options.buffer);
  require_budget(name, options.error_budget);
}

}  // namespace lade::detail
