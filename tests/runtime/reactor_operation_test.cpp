#include <lade/continue_on.hpp>
#include <lade/error.hpp>
#include <lade/reactor_operation.hpp>
#include <lade/runtime.hpp>
#include <lade/scope.hpp>
#include <lade/sleep.hpp>
#include <lade/task.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../support/coroutines.hpp"
#include "../support/reactors.hpp"
#include "../support/temp_dir.hpp"

namespace lade::reactor_operation_test {

using namespace testing_support;
using namespace std::chrono_literals;

class ReactorOperation : public ReactorTest {};
INSTANTIATE_TEST_SUITE_P(Both, ReactorOperation,
                         testing::Values(reactor_kind::io_uring, reactor_kind::fallback),
                         reactor_name);

static task<std::int64_t> open_file(std::string path) {
  co_return co_await reactor_operation::open(AT_FDCWD, path.c_str(), O_RDONLY | O_CLOEXEC);
}

static task<std::int64_t> read_from(int fd, std::string& into, std::uint64_t offset,
                                    reactor_read_options options = {}) {
  co_return co_await reactor_operation::read(fd, std::as_writable_bytes(std::span(into)), offset,
                                             options);
}

static task<std::int64_t> poll_for(int fd, unsigned events) {
  co_return co_await reactor_operation::poll(fd, events);
}

static task<std::int64_t> stat_of(std::string path, struct statx& found) {
  co_return co_await reactor_operation::stat(AT_FDCWD, path.c_str(), 0, found);
}

struct pipe_of_test {
  int from = -1;
  int to = -1;

  pipe_of_test() {
    std::array<int, 2> ends{};
    if (pipe2(ends.data(), O_CLOEXEC) != 0) throw std::runtime_error("pipe");
    from = ends[0];
    to = ends[1];
  }
  pipe_of_test(const pipe_of_test&) = delete;
  pipe_of_test& operator=(const pipe_of_test&) = delete;
  ~pipe_of_test() {
    ::close(from);
    if (to >= 0) ::close(to);
  }
};

TEST_P(ReactorOperation, OpensStatsAndReads) {
  temp_dir dir;
  auto path = dir.write("text", "0123456789");
  runtime where(options());
  struct statx found{};
  EXPECT_EQ(sync_wait(where, stat_of(path, found)), 0);
  EXPECT_EQ(found.stx_size, 10u);
  auto fd = static_cast<int>(sync_wait(where, open_file(path)));
  ASSERT_GE(fd, 0);
  for (bool apart : {false, true}) {
    std::string text(100, ' ');
    EXPECT_EQ(sync_wait(where, read_from(fd, text, 4, {.apart = apart})), 6);
    EXPECT_EQ(text.substr(0, 7), "456789 ");
  }
  close_descriptor(fd);
  EXPECT_EQ(fcntl(fd, F_GETFD), -1);  // at once: this is no thread of a reactor
}

TEST_P(ReactorOperation, ReturnsTheErrorOfTheSystem) {
  runtime where(options());
  EXPECT_EQ(sync_wait(where, open_file("/no/such/file")), -ENOENT);
  std::string text(1, ' ');
  EXPECT_EQ(sync_wait(where, read_from(-1, text, 0)), -EBADF);
}

TEST_P(ReactorOperation, PollsADescriptor) {
  runtime where(options());
  pipe_of_test pipe;
  EXPECT_EQ(sync_wait(where, poll_for(pipe.to, POLLOUT)), POLLOUT);
  ASSERT_EQ(write(pipe.to, "x", 1), 1);
  EXPECT_EQ(sync_wait(where, poll_for(pipe.from, POLLIN)), POLLIN);
}

TEST_P(ReactorOperation, IsCancelledByAStop) {
  runtime where(options());
  pipe_of_test pipe;
  std::stop_source source;
  source.request_stop();
  EXPECT_EQ(sync_wait(where, poll_for(pipe.from, POLLIN), source.get_token()), -ECANCELED);
  EXPECT_EQ(sync_wait(where, with_timeout(1ms, poll_for(pipe.from, POLLIN))), -ECANCELED);
  std::string text(1, ' ');
  EXPECT_EQ(sync_wait(where, with_timeout(1ms, read_from(pipe.from, text, 0))), -ECANCELED);
}

TEST_P(ReactorOperation, NeedsARuntime) {
  EXPECT_EQ(code_of([] { sync_wait(open_file("/")); }), errc::no_runtime);
}

static task<> close_on_reactor(int fd) {
  close_descriptor(fd);
  co_return;
}

TEST_P(ReactorOperation, ClosesADescriptorOnAReactorWithoutWaiting) {
  runtime where(options());
  pipe_of_test pipe;
  auto closed = std::exchange(pipe.to, -1);
  wait_on_reactor({.runtime = &where}, close_on_reactor(closed));
  EXPECT_EQ(sync_wait(where, poll_for(pipe.from, POLLIN)), POLLHUP);  // it has no writer
}

static task<> begin_read(int fd, std::string& text, std::int64_t& result) {
  result = co_await read_from(fd, text, 0);
}
static task<> begin_poll(int fd, std::int64_t& result) { result = co_await poll_for(fd, POLLIN); }
static task<std::size_t> count_in_flight() { co_return operations_in_flight(); }
static task<> join(scope& children) { co_await children.join(); }

TEST_P(ReactorOperation, CountsThoseInFlightPerThreadWithoutPolls) {
  auto one_reactor = options();
  one_reactor.reactors = 1;
  runtime where(one_reactor);
  pipe_of_test pipe, other;
  std::string text(1, ' ');
  std::int64_t result = 0, polled = 0;
  scope children(context{.runtime = &where, .home = &where.reactor()});
  children.start(begin_poll(other.from, polled));
  EXPECT_EQ(wait_on_reactor({.runtime = &where}, count_in_flight()), 0u);
  children.start(begin_read(pipe.from, text, result));
  EXPECT_EQ(wait_on_reactor({.runtime = &where}, count_in_flight()), 1u);
  EXPECT_EQ(operations_in_flight(), 0u);  // of this thread
  ASSERT_EQ(write(pipe.to, "x", 1), 1);
  ASSERT_EQ(write(other.to, "x", 1), 1);
  sync_wait(join(children));
  EXPECT_EQ(result, 1);
  EXPECT_EQ(polled, POLLIN);
}

}  // namespace lade::reactor_operation_test
