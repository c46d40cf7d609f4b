#include "../support/coroutines.hpp"
#include "../support/reactors.hpp"
#include "../support/temp_dir.hpp"

#include <lade/continue_on.hpp>
#include <lade/detail/runtime/reactor.hpp>
#include <lade/error.hpp>
#include <lade/io/poll.hpp>
#include <lade/runtime.hpp>
#include <lade/sync_wait.hpp>
#include <lade/when_all.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <stop_token>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace lade::poll_test {

using testing::HasSubstr;
using testing::ThrowsMessage;
using testing_support::code_of;

class Poll : public testing_support::ReactorTest {};

INSTANTIATE_TEST_SUITE_P(On, Poll, testing::Values(reactor_kind::io_uring, reactor_kind::fallback),
                         testing_support::reactor_name);

// Two sockets that are connected.
class socket_pair {
 public:
  socket_pair() {
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds_.data()), 0);
  }
  socket_pair(const socket_pair&) = delete;
  ~socket_pair() {
    close(fds_[0]);
    hang_up();
  }

  int here() const { return fds_[0]; }
  int there() const { return fds_[1]; }
  void hang_up() {
    if (fds_[1] >= 0) close(fds_[1]);
    fds_[1] = -1;
  }

 private:
  std::array<int, 2> fds_{-1, -1};
};

TEST_P(Poll, ReturnsTheEventsThatHaveHappened) {
  runtime runtime(options());
  socket_pair sockets;
  EXPECT_EQ(sync_wait(runtime, io::poll(sockets.here(), POLLIN | POLLOUT)), POLLOUT);
  ASSERT_EQ(write(sockets.there(), "x", 1), 1);
  EXPECT_EQ(sync_wait(runtime, io::poll(sockets.here(), POLLIN | POLLOUT)), POLLIN | POLLOUT);
  EXPECT_EQ(sync_wait(runtime, io::poll(sockets.here(), POLLIN)), POLLIN);
}

static task<> answer(int fd) {
  co_await io::poll(fd, POLLIN);
  char byte = 0;
  EXPECT_EQ(read(fd, &byte, 1), 1);
  EXPECT_EQ(write(fd, &byte, 1), 1);
}

static task<> ask(int fd) {
  EXPECT_EQ(write(fd, "x", 1), 1);
  co_await io::poll(fd, POLLIN);
  char byte = 0;
  EXPECT_EQ(read(fd, &byte, 1), 1);
}

TEST_P(Poll, WaitsForWhatAnotherCoroutineSends) {
  runtime runtime(options(1));
  socket_pair sockets;
  auto both = [](int a, int b) -> task<> { co_await when_all(answer(a), ask(b)); };
  for (int i = 0; i < 100; ++i) sync_wait(runtime, both(sockets.here(), sockets.there()));
}

static task<unsigned> poll_twice(int fd) {
  auto events = co_await when_all(io::poll(fd, POLLIN), io::poll(fd, POLLIN));
  co_return std::get<0>(events) | std::get<1>(events);
}

TEST_P(Poll, SeveralCoroutinesWaitForOneDescriptor) {
  runtime runtime(options());
  socket_pair sockets;
  std::jthread writer([&] { ASSERT_EQ(write(sockets.there(), "x", 1), 1); });
  EXPECT_EQ(sync_wait(runtime, poll_twice(sockets.here())), POLLIN);
}

static task<unsigned> count_in_flight(detail::reactor& reactor, int fd, std::size_t& count) {
  co_await continue_on(reactor);
  count = reactor.in_flight();
  EXPECT_EQ(write(fd, "x", 1), 1);
  co_return 0;
}

static task<> poll_and_count(runtime& where, const socket_pair& sockets, std::size_t& count) {
  std::vector<task<unsigned>> all;
  for (int i = 0; i < 8; ++i) all.push_back(io::poll(sockets.here(), POLLIN));
  all.push_back(count_in_flight(where.reactor(0), sockets.there(), count));
  co_await when_all(std::move(all));
}

// By operations in flight, reads of files see that they wait for the disk.
TEST_P(Poll, IsNoOperationOfADisk) {
  runtime runtime({.threads = 1, .reactor = GetParam(), .reactors = 1});
  socket_pair sockets;
  std::size_t count = 1;
  sync_wait(runtime, poll_and_count(runtime, sockets, count));
  EXPECT_EQ(count, 0u);
}

TEST_P(Poll, ReportsAHangUpUnasked) {
  runtime runtime(options());
  socket_pair sockets;
  sockets.hang_up();
  EXPECT_TRUE(sync_wait(runtime, io::poll(sockets.here(), 0)) & POLLHUP);
}

TEST_P(Poll, OfARegularFileEndsAtOnce) {
  runtime runtime(options());
  testing_support::temp_dir directory;
  int fd = open(directory.write("file", "").c_str(), O_RDONLY | O_CLOEXEC);
  EXPECT_EQ(sync_wait(runtime, io::poll(fd, POLLIN)), POLLIN);
  close(fd);
}

TEST_P(Poll, OfAClosedDescriptorIsAnError) {
  runtime runtime(options());
  EXPECT_THAT([&] { sync_wait(runtime, io::poll(99'999, POLLIN)); },
              ThrowsMessage<error>(HasSubstr("poll descriptor 99999: Bad file descriptor")));
}

TEST_P(Poll, AStopEndsIt) {
  runtime runtime(options());
  socket_pair sockets;
  std::stop_source stop;
  std::jthread stopper([&] { stop.request_stop(); });
  EXPECT_EQ(
      code_of([&] { sync_wait(runtime, io::poll(sockets.here(), POLLIN), stop.get_token()); }),
      errc::stopped);
}

TEST(PollOutside, OfARuntimeIsRefused) {
  EXPECT_EQ(code_of([] { sync_wait(io::poll(0, POLLIN)); }), errc::no_runtime);
}

}  // namespace lade::poll_test
