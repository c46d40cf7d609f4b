// System calls that a reactor makes for a coroutine. No thread blocks: io_uring makes them, or the
// fallback's helper threads.

#pragma once

#include <lade/detail/runtime/operation.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

struct statx;

namespace lade {

struct reactor_read_options {
  // The descriptor is open with O_DIRECT: memory, offset and size are multiples of the alignment
  // that the file system requires.
  bool direct = false;

  // Whether a helper thread copies the bytes, instead of the reactor's thread. For reads of a
  // regular file from the page cache that are larger than 256 KiB: copying them would keep the
  // reactor from its other work. Such a read cannot be cancelled once it has started.
  bool apart = false;
};

// A system call. `co_await` makes it and returns its result, or -errno:
//
//   std::int64_t opened = co_await lade::reactor_operation::open(AT_FDCWD, path, O_RDONLY);
//   if (opened < 0) lade::raise(static_cast<int>(-opened), "open " + path);
//
// - Stop: if the awaiting coroutine is asked to stop, the call is cancelled and the result is
//   -ECANCELED, or the call's own result if the call completed first: a call has either no effect,
//   or its result. A call that a signal interrupts is repeated.
// - Lifetime: the path, the memory and the descriptor belong to the caller, and must live until the
//   await returns. The kernel uses them until then, also after a stop.
// - Thread: starts on the calling thread's reactor, or on any of the runtime. The coroutine resumes
//   on its executor.
// - Errors: throws error(no_runtime) outside a runtime, and nothing else.
// - Trace: a run's trace records the call with its path.
//
// io/file.hpp has functions for files with names in errors, which wait for memory and descriptors
// instead of failing. This is for descriptors of other kinds, and for other ways to read.
class reactor_operation {
 public:
  // openat(2), which creates no file: without O_CREAT and O_TMPFILE. Pass O_CLOEXEC unless child
  // processes are to inherit the descriptor, which belongs to the caller: see close_descriptor.
  static reactor_operation open(int directory, const char* path, int flags) noexcept {
    return reactor_operation({.what = kind::open, .fd = directory, .path = path, .flags = flags});
  }

  // pread(2) of at most 1 GiB; read(2) for descriptors that cannot seek. May return fewer bytes
  // than asked for; 0 only at the end.
  static reactor_operation read(int fd, std::span<std::byte> into, std::uint64_t offset,
                                const reactor_read_options& options = {}) noexcept {
    return reactor_operation({.what = kind::read,
                              .fd = fd,
                              .data = into.data(),
                              .bytes = into.size(),
                              .offset = offset,
                              .direct = options.direct,
                              .apart = options.apart});
  }

  // statx(2), with the basic statistics.
  static reactor_operation stat(int directory, const char* path, int flags,
                                struct ::statx& found) noexcept {
    return reactor_operation(
        {.what = kind::stat, .fd = directory, .path = path, .flags = flags, .data = &found});
  }

  // One poll for `events` (POLLIN, POLLOUT and others of <poll.h>). The result is the events that
  // occurred. A poll does not count as in flight. io::poll throws its errors.
  static reactor_operation poll(int fd, unsigned events) noexcept {
    return reactor_operation(
        {.what = kind::poll, .fd = fd, .flags = static_cast<int>(events), .background = true});
  }

  detail::operation::awaiter operator co_await() const noexcept {
    return detail::operation::awaiter(call_);
  }

 private:
  using kind = detail::io_operation::kind;

  explicit reactor_operation(const detail::io_operation& call) noexcept : call_(call) {}

  detail::io_operation call_;
};

// Closes a descriptor: asynchronously on the thread of a reactor, which must not block, and before
// it returns on all other threads. Reports no error.
void close_descriptor(int fd) noexcept;

// The number of operations that the reactor of the calling thread has started and not completed,
// without polls. 0 on all other threads. Many in flight mean that the runtime waits for disks.
std::size_t operations_in_flight() noexcept;

}  // namespace lade
