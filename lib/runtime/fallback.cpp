#include "fallback.hpp"

#include <lade/error.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <new>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/openat2.h>
#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

namespace lade::detail {

static std::int64_t result_or_errno(std::int64_t result) noexcept {
  return result < 0 ? -errno : result;
}

static std::size_t bytes_at_once(const io_operation& read) noexcept {
  return std::min(read.bytes, io_operation::max_bytes);
}

// Reads without blocking. Returns -EAGAIN if no data are available, and other errors if the file
// system does not support that. `offset`: -1 for a stream, which is read at its position.
static std::int64_t read_at_once(const io_operation& read, off_t offset) noexcept {
  iovec into{read.data, bytes_at_once(read)};
  return result_or_errno(preadv2(read.fd, &into, 1, offset, RWF_NOWAIT));
}

// Opens a file if its path is in the kernel's dentry cache; otherwise fails.
static int open_at_once(const io_operation& open) noexcept {
  open_how arguments{};
  arguments.flags = static_cast<unsigned>(open.flags) | O_NONBLOCK;
  arguments.resolve = RESOLVE_CACHED;
  return static_cast<int>(syscall(SYS_openat2, open.fd, open.path, &arguments, sizeof arguments));
}

// May block on the file system, but not on a process at the other end of a FIFO.
static int open_blocking(const io_operation& open) noexcept {
  int fd = openat(open.fd, open.path, open.flags | O_NONBLOCK, 0666);
  bool leased = fd < 0 && errno == EWOULDBLOCK;
  return leased ? openat(open.fd, open.path, open.flags, 0666) : fd;
}

static bool is_stream(int fd) noexcept { return lseek(fd, 0, SEEK_CUR) < 0 && errno == ESPIPE; }

static std::int64_t read_waiting(const io_operation& read) noexcept {
  return result_or_errno(::read(read.fd, read.data, bytes_at_once(read)));
}

static std::int64_t call_blocking(const io_operation& call) noexcept {
  switch (call.what) {
    case io_operation::kind::open: return open_blocking(call);
    case io_operation::kind::read:
      return pread(call.fd, call.data, bytes_at_once(call), static_cast<off_t>(call.offset));
    case io_operation::kind::stat:
      return statx(call.fd, call.path, call.flags, STATX_BASIC_STATS,
                   static_cast<struct statx*>(call.data));
    default: break;
  }
  errno = EINVAL;
  return -1;
}

static std::int64_t call_until_done(const io_operation& call) noexcept {
  while (true) {
    auto result = result_or_errno(call_blocking(call));
    if (result != -EINTR) return result;
  }
}

void fallback::helpers::join() {
  {
    std::lock_guard lock(mutex_);
    ending_ = true;
  }
  added_.notify_all();
  for (auto& thread : threads_) thread.join();
}

void fallback::helpers::add(io_operation& operation) noexcept {
  std::unique_lock lock(mutex_);
  queue_.push(operation, io_operation::status::started);
  if (idle_ > 0) {
    --idle_;  // the thread that is notified below
    lock.unlock();
    added_.notify_one();
  } else if (threads_.size() < max_threads) {
    int failure = start_thread();
    if (!failure || !threads_.empty()) return;
    queue_.remove(operation);
    owner_.finish(operation, -failure);
  }
}

int fallback::helpers::start_thread() noexcept {
  try {
    threads_.emplace_back(&helpers::work, this);
  } catch (const std::system_error& refusal) {
    return refusal.code().value();
  } catch (const std::bad_alloc&) {
    return ENOMEM;
  }
  pthread_setname_np(threads_.back().native_handle(), "lade-helper");
  return 0;
}

bool fallback::helpers::withdraw(io_operation& operation) {
  std::lock_guard lock(mutex_);
  if (!queue_.contains(operation)) return false;
  queue_.remove(operation);
  return true;
}

void fallback::helpers::work() noexcept {
  std::unique_lock lock(mutex_);
  while (true) {
    if (auto* operation = queue_.pop()) {
      lock.unlock();
      owner_.returned(*operation, call_until_done(*operation));
      lock.lock();
    } else if (ending_) {
      return;
    } else {
      ++idle_;
      added_.wait(lock);
    }
  }
}

fallback::fallback(std::string reason)
    : reason_(std::move(reason)),
      epoll_(epoll_create1(EPOLL_CLOEXEC)),
      wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  epoll_event event{.events = EPOLLIN | EPOLLET, .data = {.ptr = nullptr}};
  if (epoll_ >= 0 && wake_ >= 0 && epoll_ctl(epoll_, EPOLL_CTL_ADD, wake_, &event) == 0) return;
  auto failure = errno;
  if (epoll_ >= 0) ::close(epoll_);
  if (wake_ >= 0) ::close(wake_);
  raise(failure, "make a reactor");
}

fallback::~fallback() {
  helpers_.join();
  ::close(wake_);
  ::close(epoll_);
}

std::string fallback::describe() const {
  return fmt::format("fallback (epoll and up to {} helper threads; {})", helpers::max_threads,
                     reason_);
}

// On some network file systems, close(2) blocks until data are written; lade writes none there.
void fallback::close(int fd) noexcept { ::close(fd); }

// The eventfd is never read: epoll is edge-triggered and reports every write.
void fallback::wake() noexcept { (void)eventfd_write(wake_, 1); }

void fallback::turn(clock::time_point deadline) noexcept {
  bool started = !submitted_.empty();
  while (auto* operation = submitted_.pop()) {
    operation->progress = io_operation::status::started;
    begin(*operation);
  }
  std::array<epoll_event, 64> events;
  int milliseconds = started ? 0 : wait_milliseconds(deadline);
  int count = epoll_wait(epoll_, events.data(), static_cast<int>(events.size()), milliseconds);
  for (int i = 0; i < count; ++i)
    if (auto* watched = events[static_cast<std::size_t>(i)].data.ptr)
      happened(*static_cast<io_operation*>(watched), events[static_cast<std::size_t>(i)].events);
}

void fallback::begin(io_operation& operation) noexcept {
  switch (operation.what) {
    case io_operation::kind::open:
      if (int fd = open_at_once(operation); fd >= 0) return opened(operation, fd);
      return helpers_.add(operation);
    case io_operation::kind::read: return begin_read(operation);
    case io_operation::kind::stat: return helpers_.add(operation);
    case io_operation::kind::close:
      return finish(operation, result_or_errno(::close(operation.fd)));
    case io_operation::kind::poll: return watch(operation, operation.fd);
  }
}

void fallback::begin_read(io_operation& read) noexcept {
  // O_DIRECT always waits for the disk; a long copy would block the reactor.
  if (read.direct || read.apart) return helpers_.add(read);
  auto result = read_at_once(read, static_cast<off_t>(read.offset));
  if (result >= 0)
    finish(read, result);
  else if (result == -ESPIPE)
    read_stream(read, false);
  else
    helpers_.add(read);
}

// Reads a pipe, socket or terminal. No helper blocks in such a read, since it cannot be cancelled.
void fallback::read_stream(io_operation& read, bool ready) noexcept {
  auto result = read_at_once(read, -1);
  if (result == -EOPNOTSUPP && ready) result = read_waiting(read);
  if (result == -EAGAIN || result == -EOPNOTSUPP)
    watch(read, read.fd);
  else
    finish(read, result);
}

// Opening a FIFO ends when it has data to read. Opening anything else, or a FIFO with O_NONBLOCK,
// ends at once.
void fallback::opened(io_operation& open, int fd) noexcept {
  if ((open.flags & O_NONBLOCK) || !is_stream(fd)) return finish(open, fd);
  if (open.progress == io_operation::status::started) return watch(open, fd);
  ::close(fd);
  finish(open, -ECANCELED);
}

void fallback::watch(io_operation& operation, int fd) noexcept {
  auto events = operation.what == io_operation::kind::poll
                    ? static_cast<std::uint32_t>(operation.flags)
                    : static_cast<std::uint32_t>(EPOLLIN);
  epoll_event event{.events = events | EPOLLONESHOT, .data = {.ptr = &operation}};
  operation.watched = fd;
  int result = epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event);
  if (result != 0 && errno == EEXIST) {  // another operation watches fd: epoll needs a duplicate
    operation.watched = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    result =
        operation.watched < 0 ? -1 : epoll_ctl(epoll_, EPOLL_CTL_ADD, operation.watched, &event);
  }
  if (result == 0) return;
  if (errno == EPERM) return always_ready(operation, events);
  auto failure = errno;
  unwatch(operation);
  finish(operation, -failure);
}

// A descriptor that epoll refuses (EPERM), such as a regular file, never blocks.
void fallback::always_ready(io_operation& operation, std::uint32_t events) noexcept {
  if (operation.what != io_operation::kind::read)
    return happened(operation, events & (POLLIN | POLLOUT));
  unwatch(operation);
  finish(operation, read_waiting(operation));
}

void fallback::unwatch(io_operation& operation) const noexcept {
  if (operation.watched < 0) return;
  epoll_ctl(epoll_, EPOLL_CTL_DEL, operation.watched, nullptr);
  if (operation.watched != operation.fd) ::close(operation.watched);
  operation.watched = -1;
}

void fallback::happened(io_operation& operation, std::uint32_t events) noexcept {
  if (operation.what == io_operation::kind::open) {
    epoll_ctl(epoll_, EPOLL_CTL_DEL, operation.watched, nullptr);
    return finish(operation, std::exchange(operation.watched, -1));
  }
  unwatch(operation);
  if (operation.what == io_operation::kind::poll)
    finish(operation, events);
  else
    read_stream(operation, true);
}

void fallback::cancel_begun(io_operation& operation) noexcept {
  if (operation.watched < 0 && !helpers_.withdraw(operation)) {
    operation.progress = io_operation::status::cancelling;
    return;
  }
  unwatch(operation);
  finish(operation, -ECANCELED);
}

// Called on a helper thread; the result is delivered on the reactor's thread.
void fallback::returned(io_operation& operation, std::int64_t result) noexcept {
  operation.result = result;
  post({[](void* ended) noexcept {
          auto& self = *static_cast<fallback*>(this_executor);
          auto& call = *static_cast<io_operation*>(ended);
          if (call.what == io_operation::kind::open && call.result >= 0)
            self.opened(call, static_cast<int>(call.result));
          else
            self.finish(call, call.result);
        },
        &operation});
}

}  // namespace lade::detail
