#include <lade/filter.hpp>

namespace lade::detail {

map_settings settings_of(const filter_options& options, std::string name) {
  return map_settings({.concurrency = options.concurrency,
                       .order = options.order,
                       .retry = options.retry,
                       .on_error = options.on_error,
                       .error_budget = options.error_budget,
                       .timeout = options.timeout,
                       .deadline = options.deadline,
                       .pool = options.pool},
                      std::move(name));
}

}  // namespace lade::detail
