#include "fallback.hpp"

#include <lade/detail/reactor.hpp>
#include <lade/error.hpp>

#include <cerrno>

namespace lade::detail {

std::unique_ptr<reactor> make_reactor(reactor_kind kind) {
  if (kind == reactor_kind::io_uring) raise(ENOSYS, "set up io_uring");
  return std::make_unique<fallback>("as asked");
}

}  // namespace lade::detail
