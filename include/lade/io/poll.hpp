// poll: waiting for a descriptor that lade has not opened, such as a socket.

#pragma once

#include <lade/task.hpp>

namespace lade::io {

// Suspends until one of `events` (POLLIN, POLLOUT and others of <poll.h>) has happened at a
// descriptor, and returns those that have. POLLERR and POLLHUP are returned also if they are not
// asked for. No thread blocks meanwhile: the reactor waits.
//
//   co_await lade::io::poll(socket, POLLIN);
//   auto bytes = ::recv(socket, data, size, MSG_DONTWAIT);
//
// The descriptor may be of any kind. It must stay open until the await returns. A regular file is
// always ready. Several coroutines may poll one descriptor: all of them resume, so that a call that
// does not block may find nothing left.
//
// Requires a runtime. Throws error with the system's reason if the descriptor cannot be polled, and
// error(stopped) when the awaiting coroutine is asked to stop.
task<unsigned> poll(int fd, unsigned events);

}  // namespace lade::io
