// poll: waits for a descriptor that lade has not opened, such as a socket.

#pragma once

#include <lade/task.hpp>

namespace lade::io {

// Suspends until one of `events` (POLLIN, POLLOUT and others of <poll.h>) occurs at a descriptor,
// and returns the events that occurred. POLLERR and POLLHUP are returned also if they are not in
// `events`. No thread blocks: the reactor waits.
//
//   co_await lade::io::poll(socket, POLLIN);
//   auto bytes = ::recv(socket, data, size, MSG_DONTWAIT);
//
// The descriptor may be of any kind. It must stay open until the await returns. A regular file is
// always ready. Several coroutines may poll one descriptor. All of them resume, so a read that does
// not block may find no data.
//
// Requires a runtime. Throws error with the system's reason if the descriptor cannot be polled, and
// error(stopped) if the caller is cancelled.
task<unsigned> poll(int fd, unsigned events);

}  // namespace lade::io
