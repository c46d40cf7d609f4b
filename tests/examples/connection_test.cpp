#include <lade/error.hpp>
#include <lade/lade.hpp>

#include <gtest/gtest.h>

#include <array>
#include <stop_token>
#include <string>

#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../../examples/connection.hpp"
#include "../support/coroutines.hpp"

using lade::testing_support::code_of;

// Both ends of a connection.
struct connected {
  connected() {
    std::array<int, 2> ends{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
    peer = ends[0];
    fd = ends[1];
  }
  connected(const connected&) = delete;
  ~connected() { hang_up(); }

  void send(const std::string& bytes) const {
    EXPECT_EQ(::send(peer, bytes.data(), bytes.size(), 0), std::ssize(bytes));
  }
  void hang_up() {
    if (peer >= 0) ::close(peer);
    peer = -1;
  }
  int unread() const {
    int bytes = 0;
    EXPECT_EQ(::ioctl(fd, FIONREAD, &bytes), 0);
    return bytes;
  }

  int peer;
  int fd;
};

static lade::task<std::size_t> finish_after_stop(const connection& client, std::stop_source stop) {
  stop.request_stop();
  co_return co_await client.finish();
}

TEST(Connection, IsLeftByAStopThoughThePeerStillSends) {
  const connected both;
  const connection client(both.fd);
  lade::runtime runtime;
  both.send(std::string(65'536, 'x'));
  std::stop_source stop;
  auto left = lade::with_stop(stop.get_token(), finish_after_stop(client, stop));
  EXPECT_EQ(code_of([&] { sync_wait(runtime, std::move(left)); }), lade::errc::stopped);
  EXPECT_EQ(both.unread(), 65'536);
}

TEST(Connection, DropsWhatThePeerStillSendsUntilItHangsUp) {
  connected both;
  const connection client(both.fd);
  lade::runtime runtime;
  both.send(std::string(10'000, 'x'));
  both.hang_up();
  EXPECT_EQ(sync_wait(runtime, client.finish()), 10'000u);
}
