#include <lade/stop_requested.hpp>

#include <lade/buffer_pool.hpp>

namespace lade {

bool stop_requested() noexcept {
  const auto* call = detail::call_memory::current;
  return call != nullptr && call->stop_requested();
}

}  // namespace lade
