#include <lade/detail/require.hpp>
#include <lade/map.hpp>

namespace lade::detail {

void require_map(std::string_view stage, const map_options& options) {
  require_concurrency(stage, options.concurrency);
  require_count(stage, "buffer", options.buffer.value_or(0));
  require_retry(stage, options.retry);
  require_budget(stage, options.error_budget);
  require_limits(stage, options.timeout, options.deadline);
}

}  // namespace lade::detail
