#include <lade/error.hpp>
#include <lade/run.hpp>

namespace lade::detail {

void alone::refuse() {
  throw error(errc::wrong_thread, "take an item of a run",
              "another thread or coroutine is taking one: only one at a time may");
}

}  // namespace lade::detail
