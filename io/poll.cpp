#include <lade/error.hpp>
#include <lade/io/poll.hpp>
#include <lade/reactor_operation.hpp>

#include <cerrno>

#include <fmt/format.h>

namespace lade::io {

task<unsigned> poll(int fd, unsigned events) {
  auto result = co_await reactor_operation::poll(fd, events);
  if (result >= 0) co_return static_cast<unsigned>(result);
  auto doing = fmt::format("poll descriptor {}", fd);
  if (result == -ECANCELED) throw error(errc::stopped, doing);
  raise(static_cast<int>(-result), doing);
}

}  // namespace lade::io
