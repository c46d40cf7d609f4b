#include <lade/detail/runtime/operation.hpp>
#include <lade/error.hpp>
#include <lade/io/poll.hpp>

#include <cerrno>
#include <string>

namespace lade::io {

task<unsigned> poll(int fd, unsigned events) {
  detail::io_operation call{.what = detail::io_operation::kind::poll,
                            .fd = fd,
                            .flags = static_cast<int>(events),
                            .background = true};
  auto result = co_await detail::operation(call);
  if (result >= 0) co_return static_cast<unsigned>(result);
  auto doing = "poll descriptor " + std::to_string(fd);
  if (result == -ECANCELED) throw error(errc::stopped, doing);
  raise(static_cast<int>(-result), doing);
}

}  // namespace lade::io
