#include <lade/error.hpp>
#include <lade/from.hpp>
#include <lade/map.hpp>
#include <lade/metrics_server.hpp>
#include <lade/run.hpp>

#include "../support/pipelines.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

namespace lade::metrics_server_test {

using namespace std::chrono_literals;
using detail::parse_request_line;
using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;
using testing::ThrowsMessage;

// A connection to a server on this machine.
class client {
 public:
  explicit client(std::uint16_t port) : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (connect(fd_, reinterpret_cast<sockaddr*>(&to), sizeof to) != 0)
      throw std::runtime_error("cannot connect");
  }
  client(const client&) = delete;
  ~client() { close(fd_); }

  void send(std::string_view text) const {
    while (!text.empty()) {
      auto sent = ::send(fd_, text.data(), text.size(), MSG_NOSIGNAL);
      if (sent <= 0) return;
      text.remove_prefix(static_cast<std::size_t>(sent));
    }
  }

  void finish() const { shutdown(fd_, SHUT_WR); }

  // All that comes until the server hangs up.
  std::string rest() const {
    std::string all;
    std::array<char, 4096> some;
    while (true) {
      auto received = recv(fd_, some.data(), some.size(), 0);
      if (received <= 0) return all;
      all.append(some.data(), static_cast<std::size_t>(received));
    }
  }

 private:
  int fd_;
};

static std::string ask(const metrics_server& server, std::string_view request) {
  client asking(server.port());
  asking.send(request);
  return asking.rest();
}

static std::string fetch(const metrics_server& server) {
  return ask(server, "GET /metrics HTTP/1.1\r\nHost: here\r\n\r\n");
}

static run_statistics delivered(std::uint64_t items) {
  run_statistics run;
  run.delivered = items;
  return run;
}

TEST(MetricsServer, ServesTheMetricsOfTheProcessAndEverySource) {
  metrics_server server;
  auto train = server.add("train", [] { return delivered(3); });
  auto loss = server.add([](metrics& all) { all.add("loss", metric_type::gauge, "Loss.", 0.25); });
  auto answer = fetch(server);
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4;"));
  EXPECT_THAT(answer, HasSubstr("\nprocess_resident_memory_bytes "));
  EXPECT_THAT(answer, HasSubstr("\nlade_run_items_total{run=\"train\"} 3\n"));
  EXPECT_THAT(answer, HasSubstr("\nloss 0.25\n"));
  auto body = answer.substr(answer.find("\r\n\r\n") + 4);
  EXPECT_THAT(answer, HasSubstr("Content-Length: " + std::to_string(body.size()) + "\r\n"));
}

TEST(MetricsServer, ServesTheProportionalMemoryOnRequest) {
  metrics_server plain;
  metrics_server with_pss({.pss = true});
  constexpr auto name = "\nprocess_proportional_memory_bytes ";
  EXPECT_THAT(fetch(plain), Not(HasSubstr(name)));
  if (!read_process_statistics({.pss = true}).pss_bytes) GTEST_SKIP() << "no smaps_rollup";
  EXPECT_THAT(fetch(with_pss), HasSubstr(name));
}

TEST(MetricsServer, ServesTheMetricsOfARunUntilItIsRemoved) {
  runtime runtime({.threads = 2});
  metrics_server server;
  for (int round = 0; round < 3; ++round) {
    auto items = runtime.run(from(test::numbers{100}) | map([](int i) { return i; }));
    auto shown = server.add("train", [&] { return items.statistics(); });
    test::collect(items);
    EXPECT_THAT(fetch(server), HasSubstr("lade_run_items_total{run=\"train\"} 100\n"));
  }
  EXPECT_THAT(fetch(server), Not(HasSubstr("lade_run")));
}

TEST(MetricsServer, RefusesASecondSourceOfOneName) {
  metrics_server server;
  auto source = [] { return delivered(3); };
  {
    auto first = server.add("train", source);
    EXPECT_THAT([&] { auto second = server.add("train", source); },
                ThrowsMessage<error>("metrics_server: another source is named train"));
    auto other = server.add("validate", source);
  }
  auto again = server.add("train", source);
}

TEST(MetricsServer, ARegistrationMayOutliveIt) {
  std::optional<metrics_server> server(std::in_place);
  auto shown = server->add("train", [] { return delivered(3); });
  auto moved = std::move(shown);
  EXPECT_THAT(fetch(*server), HasSubstr("lade_run_items_total"));
  server.reset();
}

TEST(MetricsServer, ASourceThatThrowsIsReportedAsStatus500) {
  metrics_server server;
  {
    auto broken = server.add("x", []() -> run_statistics { throw std::runtime_error("no run"); });
    EXPECT_THAT(fetch(server), AllOf(StartsWith("HTTP/1.1 500 "), EndsWith("\r\n\r\nno run\n")));
    auto odd = server.add("y", []() -> run_statistics { throw 1; });
  }
  EXPECT_THAT(fetch(server), StartsWith("HTTP/1.1 200 "));
}

TEST(MetricsServer, AnswersOddRequests) {
  metrics_server server;
  EXPECT_THAT(ask(server, "GET /metrics?a=b HTTP/1.0\n\n"), StartsWith("HTTP/1.1 200 "));
  EXPECT_THAT(ask(server, "GET / HTTP/1.1\r\n\r\n"), StartsWith("HTTP/1.1 404 "));
  EXPECT_THAT(ask(server, "POST /metrics HTTP/1.1\r\n\r\nbody"),
              AllOf(StartsWith("HTTP/1.1 405 "), HasSubstr("\r\nAllow: GET, HEAD\r\n")));
  EXPECT_THAT(ask(server, "\r\n\r\n"), StartsWith("HTTP/1.1 400 "));
  EXPECT_THAT(ask(server, std::string("\0\xff\x16\x03\x01 x y\n\n", 11)),
              StartsWith("HTTP/1.1 400 "));
}

TEST(MetricsServer, ToHeadAnswersWithTheHeadersOfGetAlone) {
  metrics_server server;
  auto loss = server.add([](metrics& all) { all.add("loss", metric_type::gauge, "Loss.", 0.25); });
  auto head = ask(server, "HEAD /metrics HTTP/1.1\r\n\r\n");
  EXPECT_THAT(head, AllOf(StartsWith("HTTP/1.1 200 OK\r\nContent-Type: text/plain"),
                          HasSubstr("\r\nContent-Length: "), EndsWith("\r\n\r\n")));
  EXPECT_THAT(head, Not(HasSubstr("Content-Length: 0")));
  EXPECT_THAT(ask(server, "HEAD /x HTTP/1.1\r\n\r\n"),
              AllOf(StartsWith("HTTP/1.1 404 "), EndsWith("\r\n\r\n")));
}

TEST(MetricsServer, ARequestMayArriveByteByByte) {
  metrics_server server;
  client slow(server.port());
  for (char byte : std::string_view("GET /metrics HTTP/1.1\r\n\r\n")) slow.send({&byte, 1});
  EXPECT_THAT(slow.rest(), StartsWith("HTTP/1.1 200 "));
}

TEST(MetricsServer, RefusesARequestWithoutEnd) {
  metrics_server server;
  client endless(server.port());
  endless.send("GET /metrics HTTP/1.1\r\n" + std::string(8192, 'x'));
  endless.finish();
  EXPECT_THAT(endless.rest(), StartsWith("HTTP/1.1 431 "));
  EXPECT_THAT(fetch(server), StartsWith("HTTP/1.1 200 "));
}

TEST(MetricsServer, ClosesConnectionsOfSilentClients) {
  metrics_server server({.timeout = 10ms});
  client silent(server.port());
  EXPECT_EQ(silent.rest(), "");
}

TEST(MetricsServer, ServesMoreClientsThanConnectionsInTurn) {
  metrics_server server({.timeout = 1s, .connections = 2});
  std::vector<std::thread> threads;
  std::atomic<int> answered = 0;
  for (int i = 0; i < 20; ++i)
    threads.emplace_back([&] { answered += fetch(server).starts_with("HTTP/1.1 200 "); });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(answered, 20);
}

TEST(MetricsServer, SilentClientsAreReplacedAfterTheTimeout) {
  metrics_server server({.timeout = 20ms, .connections = 2});
  client first(server.port());
  client second(server.port());
  EXPECT_EQ(first.rest() + second.rest(), "");
  EXPECT_THAT(fetch(server), StartsWith("HTTP/1.1 200 "));
}

TEST(MetricsServer, SurvivesClientsThatHangUp) {
  metrics_server server;
  for (auto* request : {"", "GET", "GET /metrics HTTP/1.1\r\n\r\n"})
    for (int i = 0; i < 10; ++i) client(server.port()).send(request);
  EXPECT_THAT(fetch(server), StartsWith("HTTP/1.1 200 "));
}

TEST(MetricsServer, EndsWithClientsThatAreThere) {
  std::optional<metrics_server> server(std::in_place);
  client silent(server->port());
  client asking(server->port());
  asking.send("GET /met");
  server.reset();
  EXPECT_EQ(asking.rest(), "");
}

TEST(MetricsServer, ListensOnTheAddressOfItsOptions) {
  metrics_server everywhere({.address = "0.0.0.0"});
  EXPECT_THAT(fetch(everywhere), StartsWith("HTTP/1.1 200 "));
  try {
    metrics_server six({.address = "::1"});
    EXPECT_GT(six.port(), 0);
  } catch (const error& failure) {
    GTEST_SKIP() << failure.what();
  }
}

TEST(MetricsServer, APortThatIsTakenIsAnError) {
  metrics_server first;
  auto where = "127.0.0.1:" + std::to_string(first.port());
  EXPECT_THAT([&] { metrics_server second({.port = first.port()}); },
              ThrowsMessage<error>("listen on " + where + ": Address already in use"));
}

TEST(MetricsServer, RefusesWhatIsNoAddress) {
  EXPECT_THAT([] { metrics_server server({.address = "localhost?"}); },
              ThrowsMessage<error>("listen on localhost?:0: not an IPv4 or IPv6 address"));
}

TEST(RequestLine, HasAMethodAndAPath) {
  auto line = parse_request_line("GET /a/b?c=d HTTP/1.1");
  ASSERT_TRUE(line);
  EXPECT_EQ(line->method, "GET");
  EXPECT_EQ(line->path, "/a/b");
}

TEST(RequestLine, MalformedTextIsRefused) {
  for (auto* text :
       {"", " ", "GET", "GET /", "GET / HTTP/2", "GET / HTTP/1.11", "get / HTTP/1.1",
        "GET  / HTTP/1.1", "GET / / HTTP/1.1", " / HTTP/1.1", "GET x HTTP/1.1", "GET /\t HTTP/1.1",
        "GET /\x7f HTTP/1.1", "GET /ä HTTP/1.1", "GET / HTTP/1.1 "})
    EXPECT_FALSE(parse_request_line(text)) << text;
}

}  // namespace lade::metrics_server_test
