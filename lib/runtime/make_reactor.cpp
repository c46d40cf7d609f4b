#include "fallback.hpp"
#include "uring.hpp"

#include <lade/detail/runtime/reactor.hpp>
#include <lade/error.hpp>

#include <string>

namespace lade::detail {

// Weak, so that a test can define a replacement that returns its own reactor.
[[gnu::weak]] std::unique_ptr<reactor> make_reactor(reactor_kind kind) {
  if (kind == reactor_kind::fallback) return std::make_unique<fallback>("io_uring not wanted");
  try {
    return std::make_unique<uring>();
  } catch (const error& refusal) {
    if (kind == reactor_kind::io_uring) throw;
    return std::make_unique<fallback>("io_uring refused: " + refusal.code().message());
  }
}

}  // namespace lade::detail
