#include <lade/async_generator.hpp>
#include <lade/error.hpp>
#include <lade/task.hpp>

namespace lade::detail {

void refuse_task(bool moved) {
  throw error(errc::invalid_argument, "await a task",
              moved ? "it has been moved from" : "it has been awaited before");
}

void refuse_generator() {
  throw error(errc::invalid_argument, "await an item of a generator", "it has been moved from");
}

}  // namespace lade::detail
