#include <lade/error.hpp>
#include <lade/event.hpp>
#include <lade/io/http/client.hpp>
#include <lade/io/store.hpp>
#include <lade/runtime.hpp>
#include <lade/scope.hpp>
#include <lade/sleep.hpp>
#include <lade/sync_wait.hpp>
#include <lade/this_context.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <mutex>
#include <random>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <arpa/inet.h>
#include <curl/curl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../../../io/http/origin.hpp"
#include "../../support/reactors.hpp"
#include "../../support/seed.hpp"
#include "../../support/web_server.hpp"

namespace lade::io::http::client_test {

using namespace testing_support;
using namespace std::chrono_literals;
using namespace std::string_view_literals;
using test::file_reply;
using test::web_reply;
using test::web_request;
using test::web_server;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::Property;
using testing::Throws;
using testing::ThrowsMessage;

static std::string content_of(std::size_t bytes) {
  std::string content(bytes, '\0');
  for (std::size_t i = 0; i < bytes; ++i) content[i] = static_cast<char>(i * 31 + i / 251);
  return content;
}

static buffer bytes_of(std::string_view text) {
  buffer bytes(text.size());
  std::memcpy(bytes.data(), text.data(), text.size());
  return bytes;
}

// Options that let tests of failures end soon.
static client_options quick() {
  client_options options;
  options.retry.pause = 1ms;
  options.longest_pause = 2ms;
  options.stall_timeout = 100ms;
  return options;
}

static task<buffer> next_of(async_generator<buffer> from) {
  auto* chunk = co_await from.next();
  co_return chunk ? *chunk : buffer();
}

// The resolver of the process keeps what it knows of a host.
class Client : public ReactorTest {
 protected:
  static void SetUpTestSuite() {
    web_server server([](auto& request) { return file_reply(request, "x"); });
    const auto port = server.host().substr(server.host().find(':'));
    runtime runtime;
    (void)sync_wait(runtime, client().get("http://localhost" + port));
  }
};
INSTANTIATE_TEST_SUITE_P(Both, Client,
                         testing::Values(reactor_kind::io_uring, reactor_kind::fallback),
                         reactor_name);

TEST_P(Client, GetsAnObject) {
  const auto content = content_of(300'000);
  web_server server([&](auto& request) { return file_reply(request, content); });
  runtime runtime(options());
  client web;
  auto got = sync_wait(runtime, web.get(server.url("/a")));
  EXPECT_EQ(got.status(), 200);
  EXPECT_EQ(got.etag(), "\"v1\"");
  EXPECT_EQ(got.url(), server.url("/a"));
  EXPECT_EQ(got.object_bytes(), content.size());
  EXPECT_TRUE(got.body().text() == content);
  EXPECT_EQ(web.stats().requests, 1u);
  EXPECT_EQ(web.stats().bytes_in, content.size());
}

TEST_P(Client, GetsAPart) {
  const auto content = content_of(300'000);
  web_server server([&](auto& request) { return file_reply(request, content); });
  runtime runtime(options());
  client web;
  auto got = sync_wait(runtime, web.get(server.url(), {.offset = 1000, .bytes = 500}));
  EXPECT_EQ(got.body().text(), content.substr(1000, 500));
  EXPECT_EQ(got.object_bytes(), content.size());
  auto rest = sync_wait(runtime, web.get(server.url(), {.offset = 299'000}));
  EXPECT_EQ(rest.body().text(), content.substr(299'000));
}

TEST_P(Client, GetsABodyOfUnknownLength) {
  const auto content = content_of(3'000'000);
  for (bool is_chunked : {true, false}) {
    web_server server([&](auto&) {
      return web_reply{.body = content, .is_chunked = is_chunked, .says_length = false};
    });
    runtime runtime(options());
    EXPECT_TRUE(sync_wait(runtime, client().get(server.url())).body().text() == content);
  }
}

TEST_P(Client, GetsAnEmptyBody) {
  web_server server([](auto&) { return web_reply{}; });
  runtime runtime(options());
  EXPECT_EQ(sync_wait(runtime, client().get(server.url())).body().size(), 0u);
}

TEST_P(Client, KeepsConnections) {
  web_server server([](auto& request) { return file_reply(request, "x"); });
  runtime runtime(options());
  client web;
  for (int i = 0; i < 20; ++i) (void)sync_wait(runtime, web.get(server.url()));
  EXPECT_EQ(server.requests(), 20u);
  EXPECT_EQ(server.connections(), 1u);
  EXPECT_EQ(web.stats().connections, 1u);
}

TEST_P(Client, AsksForHeadersAlone) {
  web_server server([](auto& request) { return file_reply(request, "0123456789"); });
  runtime runtime(options());
  auto got = sync_wait(runtime, client().head(server.url()));
  EXPECT_EQ(got.object_bytes(), 10u);
  EXPECT_EQ(got.body().size(), 0u);
  EXPECT_EQ(server.seen().at(0).method, "HEAD");
}

TEST_P(Client, PutsAnObject) {
  web_server server([](auto&) { return web_reply{.status = 201}; });
  runtime runtime(options());
  const auto content = content_of(500'000);
  EXPECT_EQ(sync_wait(runtime, client().put(server.url("/new"), bytes_of(content))).status(), 201);
  EXPECT_EQ(server.seen().at(0).method, "PUT");
  EXPECT_TRUE(server.seen().at(0).body == content);
}

TEST_P(Client, SendsTheHeadersOfTheProgram) {
  web_server server([](auto& request) { return file_reply(request, "x"); });
  runtime runtime(options());
  request what("GET", server.url("/a?b=c"));
  what.headers.emplace_back("X-Name", "value");
  (void)sync_wait(runtime, client({.user_agent = "trainer/1"}).send(what));
  auto seen = server.seen().at(0);
  EXPECT_EQ(seen.target, "/a?b=c");
  EXPECT_EQ(seen.headers["x-name"], "value");
  EXPECT_EQ(seen.headers["user-agent"], "trainer/1");
}

TEST_P(Client, NamesTheRefusalOfAServerWithoutSecrets) {
  web_server server(
      [](auto&) { return web_reply{.status = 403, .body = "Signature is wrong\nsecond line"}; });
  runtime runtime(options());
  auto url = "http://user:secret@" + server.host() + "/a?prefix=b&X-Amz-Signature=secret";
  EXPECT_THAT([&] { (void)sync_wait(runtime, client().get(url)); },
              ThrowsMessage<error>("get http://" + server.host() +
                                   "/a?prefix=b&X-Amz-Signature=...: 403 Forbidden: Signature is "
                                   "wrong (attempt 1 of 5)"));
  try {
    (void)sync_wait(runtime, client().get(url));
  } catch (const error& failure) {
    EXPECT_EQ(failure.code(), status_code(403));
  }
}

TEST_P(Client, NamesAServerThatIsNotThere) {
  runtime runtime(options());
  std::string url;
  {
    web_server gone([](auto&) { return web_reply{}; });
    url = gone.url("/a");
  }
  EXPECT_THAT([&] { (void)sync_wait(runtime, client(quick()).get(url)); },
              ThrowsMessage<error>(AllOf(HasSubstr("get " + url + ": Failed to connect to "),
                                         HasSubstr(": Couldn't connect to server ("),
                                         HasSubstr("(attempt 5 of 5)"))));
}

// Accepts no connections; the system keeps one for it, and answers no others.
class deaf_server {
 public:
  deaf_server() {
    address_.sin_family = AF_INET;
    address_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address_;
    auto* address = reinterpret_cast<sockaddr*>(&address_);
    if (bind(listener_, address, size) != 0 || listen(listener_, 0) != 0 ||
        getsockname(listener_, address, &size) != 0 || connect(kept_, address, size) != 0)
      throw std::system_error(errno, std::generic_category(), "deaf_server");
  }
  deaf_server(const deaf_server&) = delete;
  ~deaf_server() {
    close(kept_);
    close(listener_);
  }

  std::string url() const {
    return "http://127.0.0.1:" + std::to_string(ntohs(address_.sin_port)) + "/a";
  }

 private:
  int listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  int kept_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address_{};
};

TEST_P(Client, AServerThatDoesNotAnswerAConnectionIsNamed) {
  const deaf_server server;
  runtime runtime(options());
  client_options once{.connect_timeout = 50ms, .stall_timeout = 1h, .deadline = 10s};
  once.retry.attempts = 1;
  try {
    (void)sync_wait(runtime, client(once).get(server.url()));
    ADD_FAILURE() << "nothing was thrown";
  } catch (const error& failure) {
    EXPECT_EQ(failure.code().value(), CURLE_OPERATION_TIMEDOUT) << failure.what();
    EXPECT_THAT(failure.what(), AllOf(HasSubstr("get " + server.url()), HasSubstr("onnect")));
  }
}

TEST_P(Client, APathIsSentAsItIs) {
  web_server server([](auto& request) { return file_reply(request, "x"); });
  runtime runtime(options());
  client web;
  for (std::string target : {"/a/../b", "/a/./b", "/..", "/a//b/"}) {
    (void)sync_wait(runtime, web.get(server.url(target)));
    EXPECT_EQ(server.seen().back().target, target);
  }
}

TEST_P(Client, RetriesTransientErrors) {
  for (int status : {408, 425, 429, 500, 502, 503, 504}) {
    std::atomic<int> calls = 0;
    web_server server([&](auto& request) {
      return ++calls < 4 ? web_reply{.status = status, .headers = {{"Retry-After", "0"}}}
                         : file_reply(request, "there");
    });
    runtime runtime(options());
    client web(quick());
    EXPECT_EQ(sync_wait(runtime, web.get(server.url())).body().text(), "there");
    EXPECT_EQ(web.stats().retries, 3u);
  }
}

TEST_P(Client, FailsAfterItsLastAttempt) {
  web_server server([](auto&) { return web_reply{.status = 503, .body = "busy"}; });
  runtime runtime(options());
  auto twice = quick();
  twice.retry.attempts = 2;
  EXPECT_THAT([&] { (void)sync_wait(runtime, client(twice).get(server.url())); },
              ThrowsMessage<error>(HasSubstr("503 Service Unavailable: busy (attempt 2 of 2)")));
  EXPECT_EQ(server.requests(), 2u);
}

TEST_P(Client, ContinuesABrokenBodyWhereItBrokeOff) {
  const auto content = content_of(400'000);
  web_server server([&](auto& request) {
    auto reply = file_reply(request, content);
    if (request.headers.count("range") == 0) reply.cut_at = 150'000;
    return reply;
  });
  runtime runtime(options());
  EXPECT_TRUE(sync_wait(runtime, client(quick()).get(server.url())).body().text() == content);
  auto seen = server.seen();
  ASSERT_EQ(seen.size(), 2u);
  EXPECT_EQ(seen[1].headers["range"], "bytes=150000-");
  EXPECT_EQ(seen[1].headers["if-match"], "\"v1\"");
}

TEST_P(Client, RestartsABodyWithoutAStrongEntityTag) {
  const auto content = content_of(400'000);
  for (const std::string tag : {"W/\"v1\"", ""}) {
    std::atomic<int> calls = 0;
    web_server server([&](auto& request) {
      auto reply = file_reply(request, content, tag);
      if (tag.empty()) reply.headers.clear();
      if (++calls == 1) reply.cut_at = 150'000;
      return reply;
    });
    runtime runtime(options());
    EXPECT_TRUE(sync_wait(runtime, client(quick()).get(server.url())).body().text() == content);
    EXPECT_EQ(server.seen().at(1).headers.count("range"), 0u);
  }
}

TEST_P(Client, AnObjectThatChangesWhileItIsReadIsAnError) {
  const auto content = content_of(400'000);
  std::atomic<int> calls = 0;
  web_server server([&](auto& request) {
    auto call = ++calls;
    auto reply = file_reply(request, content, "\"v" + std::to_string(call) + "\"");
    if (call == 1) reply.cut_at = 150'000;
    return reply;
  });
  runtime runtime(options());
  EXPECT_THAT([&] { (void)sync_wait(runtime, client(quick()).get(server.url())); },
              ThrowsMessage<error>(HasSubstr("the object has changed while it was read")));
}

TEST_P(Client, AServerThatIgnoresRangesIsNoticed) {
  const auto content = content_of(400'000);
  web_server server([&](auto&) { return web_reply{.body = content}; });
  runtime runtime(options());
  EXPECT_THAT(
      [&] {
        (void)sync_wait(runtime, client(quick()).get(server.url(), {.offset = 5, .bytes = 7}));
      },
      ThrowsMessage<error>(HasSubstr("the server sent another part than bytes 5-11")));
}

TEST_P(Client, APartThatIsShorterThanAskedForIsAnError) {
  const std::string ranges[] = {"bytes 5-9/100", "bytes 5-20/100", "bytes 6-11/100", "bytes 5-11",
                                "bytes */100",   "5-11/100",       "bytes 5-x/100"};
  for (auto& range : ranges) {
    web_server server([&](auto&) {
      return web_reply{.status = 206, .headers = {{"Content-Range", range}}, .body = "01234"};
    });
    runtime runtime(options());
    EXPECT_THAT(
        [&] {
          (void)sync_wait(runtime, client(quick()).get(server.url(), {.offset = 5, .bytes = 7}));
        },
        ThrowsMessage<error>(HasSubstr("the server sent another part than bytes 5-11")));
  }
}

TEST_P(Client, APartThatIsCutShortIsAnError) {
  web_server server([&](auto&) {
    return web_reply{.status = 206,
                     .headers = {{"Content-Range", "bytes 5-11/100"}},
                     .body = "01234",
                     .is_chunked = true};
  });
  runtime runtime(options());
  EXPECT_THAT(
      [&] {
        (void)sync_wait(runtime, client(quick()).get(server.url(), {.offset = 5, .bytes = 7}));
      },
      ThrowsMessage<error>(HasSubstr("the server sent 5 of 7 bytes (attempt 5 of 5)")));
}

TEST_P(Client, APartThatReachesBeyondTheEndIsTheRest) {
  web_server server([](auto& request) { return file_reply(request, "0123456789"); });
  runtime runtime(options());
  auto got = sync_wait(runtime, client().get(server.url(), {.offset = 7, .bytes = 100}));
  EXPECT_EQ(got.body().text(), "789");
}

static task<std::string> read_after_shrinking(client web, std::string url, std::string& content) {
  auto from = co_await web.open(std::move(url));
  content.resize(50);
  auto part = co_await from->read_at(40, 20);
  co_return std::string(part.text());
}

TEST_P(Client, AnObjectThatShrinksWhileItIsOpenIsAnError) {
  std::string content = content_of(100);
  web_server server([&](auto& request) { return file_reply(request, content); });
  runtime runtime(options());
  EXPECT_THAT(
      [&] { (void)sync_wait(runtime, read_after_shrinking(client(), server.url(), content)); },
      ThrowsMessage<error>(HasSubstr("the object has become shorter while it was read")));
}

TEST_P(Client, AnotherAttemptSucceedsAfterEachFault) {
  const auto content = content_of(400'000);
  const web_reply faults[] = {{.resets = true},
                              {.body = content, .cut_at = 0},
                              {.body = content, .cut_at = 399'999},
                              {.body = content, .length = "500000", .cut_at = 400'000},
                              {.body = content, .is_chunked = true, .cut_at = 200'000},
                              {.body = content, .stall_at = 1000},
                              {.status = 500}};
  for (auto& fault : faults) {
    std::atomic<int> calls = 0;
    web_server server(
        [&](auto& request) { return ++calls == 1 ? fault : file_reply(request, content); });
    runtime runtime(options());
    EXPECT_TRUE(sync_wait(runtime, client(quick()).get(server.url())).body().text() == content);
  }
}

TEST_P(Client, RefusesABodyThatIsTooLong) {
  const auto content = content_of(400'000);
  for (bool is_chunked : {true, false}) {
    web_server server([&](auto&) { return web_reply{.body = content, .is_chunked = is_chunked}; });
    runtime runtime(options());
    EXPECT_THAT([&] { (void)sync_wait(runtime, client({.max_bytes = 399'999}).get(server.url())); },
                ThrowsMessage<error>(HasSubstr("the body is longer than max_bytes, 399999")));
  }
}

TEST_P(Client, FollowsRedirectsWithoutTheHeadersOfTheProgramToAnotherHost) {
  web_server other([](auto& request) { return file_reply(request, "there"); });
  web_server server([&](auto&) {
    return web_reply{.status = 302, .headers = {{"Location", other.url("/b?sig=a1")}}};
  });
  runtime runtime(options());
  client web;
  web.authorize(server.host(), [](bool) -> task<std::string> { co_return "secret"; });
  request what("GET", server.url("/a"));
  what.headers.emplace_back("X-Secret", "secret");
  what.range = {1, 3};
  auto got = sync_wait(runtime, web.send(what));
  EXPECT_EQ(got.body().text(), "her");
  EXPECT_EQ(got.url(), other.url("/b?sig=..."));
  EXPECT_EQ(server.seen().at(0).headers["authorization"], "Bearer secret");
  EXPECT_EQ(server.seen().at(0).headers["x-secret"], "secret");
  auto seen = other.seen().at(0);
  EXPECT_EQ(seen.headers.count("authorization"), 0u);
  EXPECT_EQ(seen.headers.count("x-secret"), 0u);
  EXPECT_EQ(seen.headers["range"], "bytes=1-3");
}

TEST_P(Client, RedirectsInACircleEnd) {
  web_server server([&](auto& request) {
    return web_reply{.status = 301,
                     .headers = {{"Location", request.target == "/a" ? "/b" : "/a"}}};
  });
  runtime runtime(options());
  EXPECT_THAT([&] { (void)sync_wait(runtime, client().get(server.url("/a"))); },
              ThrowsMessage<error>(HasSubstr("more than 5 redirects")));
  EXPECT_EQ(server.requests(), 6u);
}

TEST_P(Client, AsksForAnotherTokenOnceAfterARefusal) {
  web_server server([](auto& request) {
    return request.headers.at("authorization") == "Bearer new" ? file_reply(request, "there")
                                                               : web_reply{.status = 401};
  });
  runtime runtime(options());
  client web;
  web.authorize("127.0.0.1",
                [](bool refused) -> task<std::string> { co_return refused ? "new" : "old"; });
  EXPECT_EQ(sync_wait(runtime, web.get(server.url())).body().text(), "there");
  client refused;
  refused.authorize("127.0.0.1", [](bool) -> task<std::string> { co_return "old"; });
  EXPECT_THAT([&] { (void)sync_wait(runtime, refused.get(server.url())); },
              ThrowsMessage<error>(HasSubstr("401 Unauthorized")));
}

TEST_P(Client, AuthorizesHostsHoweverTheyAreWritten) {
  web_server server([](auto& request) { return file_reply(request, "x"); });
  const auto port = server.host().substr(server.host().find(':'));
  runtime runtime(options());
  for (const std::string name : {"LocalHost", "LOCALHOST", "127.0.0.1"}) {
    for (auto& ending : {std::string(), port}) {
      client web;
      web.authorize(name + ending, [](bool) -> task<std::string> { co_return "token"; });
      auto host = name == "127.0.0.1" ? name : std::string("localhost");
      (void)sync_wait(runtime, web.get("http://" + host + port + "/"));
      EXPECT_EQ(server.seen().back().headers["authorization"], "Bearer token") << name;
    }
  }
  client other;
  other.authorize("127.0.0.1:1", [](bool) -> task<std::string> { co_return "token"; });
  (void)sync_wait(runtime, other.get(server.url()));
  EXPECT_EQ(server.seen().back().headers.count("authorization"), 0u);
}

TEST(HttpAuthorize, RefusesWhatIsNoHost) {
  client web;
  auto token = [](bool) -> task<std::string> { co_return "token"; };
  for (const std::string name : {"https://host", "host/path", "", "user@host", "host:", "host:x",
                                 "host:70000", "a b", "host?a", "::1", "https://host/a?token=x"})
    EXPECT_THAT([&] { web.authorize(name, token); },
                ThrowsMessage<error>(AllOf(HasSubstr("authorize " + name.substr(0, name.find('?'))),
                                           HasSubstr("host:port"), Not(HasSubstr("token=x")))))
        << name;
  for (auto* name : {"[::1]", "[0:0::1]:80", "Host.Example:443"})
    EXPECT_NO_THROW(web.authorize(name, token)) << name;
  EXPECT_THAT([&] { web.authorize("host", nullptr); },
              ThrowsMessage<error>("authorize host: no function for tokens"));
}

static task<> stop_when_asked(const web_server& server, std::stop_source& stop,
                              std::size_t requests) {
  while (server.requests() < requests) std::this_thread::yield();
  stop.request_stop();
  co_return;
}

static task<> get_many(client web, std::string url, int count) {
  scope children(co_await this_context());
  for (int i = 0; i < count; ++i) children.start(web.get(url));
  co_await children.join();
}

TEST_P(Client, AStopEndsRequestsThatAreNeverAnswered) {
  web_server server([](auto&) { return web_reply{.is_silent = true}; });
  runtime runtime(options());
  std::stop_source stop;
  std::jthread stopping([&] { sync_wait(stop_when_asked(server, stop, 64)); });
  auto many = get_many(client(), server.url(), 64);
  EXPECT_THAT([&] { sync_wait(runtime, std::move(many), stop.get_token()); },
              Throws<error>(Property(&error::code, errc::stopped)));
}

static task<> read_all(async_generator<buffer> chunks) {
  while (true) {
    auto* chunk = co_await chunks.next();
    if (!chunk) break;
  }
}

// What libcurl takes without handing it over, as fast as it comes.
TEST_P(Client, EndlessBytesOutsideTheBodyDoNotDelayATimeout) {
  web_server server([](auto&) {
    return web_reply{.raw = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;",
                     .raw_without_end = std::string(1 << 20, 'x')};
  });
  runtime runtime(options());
  auto reading = with_timeout(10ms, read_all(client().stream(server.url())), "reading");
  EXPECT_THAT([&] { sync_wait(runtime, std::move(reading)); },
              Throws<error>(Property(&error::code, errc::timed_out)));
}

TEST_P(Client, HeadersWithoutEndBehindABodyAreRefused) {
  web_server server([](auto&) {
    return web_reply{.raw = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n",
                     .raw_without_end = "X-Header: " + std::string(1000, 'x') + "\r\n"};
  });
  runtime runtime(options());
  for (auto attempts : {1u, 2u}) {
    auto once = quick();
    once.retry.attempts = attempts;
    auto reading = read_all(client(once).stream(server.url()));
    EXPECT_THAT([&] { sync_wait(runtime, std::move(reading)); },
                ThrowsMessage<error>(HasSubstr("more than 512 KiB of headers")));
    EXPECT_THAT([&] { (void)sync_wait(runtime, client(once).get(server.url())); },
                ThrowsMessage<error>(HasSubstr("more than 512 KiB of headers")));
  }
}

TEST_P(Client, ADeadlineEndsARequestThatIsNeverAnswered) {
  web_server server([](auto&) { return web_reply{.is_silent = true}; });
  runtime runtime(options());
  auto soon = quick();
  soon.deadline = 20ms;
  try {
    (void)sync_wait(runtime, client(soon).get(server.url("/a")));
    ADD_FAILURE() << "nothing was thrown";
  } catch (const error& failure) {
    EXPECT_EQ(failure.code(), errc::timed_out) << failure.what();
    EXPECT_THAT(failure.what(), HasSubstr("get " + server.url("/a") + ": "));
  }
}

TEST_P(Client, AnAttemptThatTakesTooLongIsNamed) {
  const auto content = content_of(1000);
  for (auto& reply : {web_reply{.is_silent = true}, web_reply{.body = content, .stall_at = 500}}) {
    web_server server([&](auto&) { return reply; });
    runtime runtime(options());
    auto soon = quick();
    soon.retry.attempts = 2;
    soon.stall_timeout = 30s;
    soon.timeout = 100ms;
    try {
      (void)sync_wait(runtime, client(soon).get(server.url("/a")));
      ADD_FAILURE() << "nothing was thrown";
    } catch (const error& failure) {
      EXPECT_EQ(failure.code(), std::error_code(CURLE_OPERATION_TIMEDOUT, curl_category()));
      EXPECT_THAT(failure.what(), HasSubstr("get " + server.url("/a") + ": Timeout was reached: "));
      EXPECT_THAT(failure.what(), HasSubstr("timed out after "));
      EXPECT_THAT(failure.what(), HasSubstr("(attempt 2 of 2)"));
    }
  }
}

TEST_P(Client, AnAttemptThatTakesTooLongIsFollowedByAnother) {
  std::atomic<int> calls = 0;
  web_server server([&](auto& request) {
    return ++calls == 1 ? web_reply{.is_silent = true} : file_reply(request, "there");
  });
  runtime runtime(options());
  auto soon = quick();
  soon.retry.attempts = 1000;
  soon.stall_timeout = 1h;
  soon.timeout = 100ms;
  client web(soon);
  EXPECT_EQ(sync_wait(runtime, web.get(server.url())).body().text(), "there");
  EXPECT_GE(web.stats().retries, 1u);
}

static task<std::string> joined(async_generator<buffer> chunks) {
  std::string all;
  while (auto* chunk = co_await chunks.next()) all += chunk->text();
  co_return all;
}

static task<std::string> wait_for_token(event& never) {
  co_await never;
  co_return std::string("token");
}

template <class T>
static task<> without_result(task<T> work) {
  (void)co_await std::move(work);
}

static request first_bytes_of(const std::string& url) {
  request what("GET", url);
  what.range = {0, 10};
  return what;
}

TEST_P(Client, ADeadlineIncludesAllWaitsOfARequest) {
  web_server server([](auto&) { return web_reply{.is_silent = true}; });
  event never;
  runtime runtime(options());
  for (bool waits_for_token : {true, false}) {
    auto soon = quick();
    soon.stall_timeout = 1h;
    soon.deadline = 10ms;
    soon.requests = 1;
    client web(soon);
    if (waits_for_token) web.authorize(server.host(), [&](bool) { return wait_for_token(never); });
    std::vector<std::pair<std::string, task<>>> all;
    all.emplace_back("get", without_result(web.get(server.url("/a"))));
    all.emplace_back("head", without_result(web.head(server.url("/a"))));
    all.emplace_back("get", without_result(web.open(server.url("/a"))));
    all.emplace_back("get", without_result(web.get_part(first_bytes_of(server.url("/a")))));
    all.emplace_back("stream", without_result(joined(web.stream(server.url("/a")))));
    for (auto& [verb, work] : all) try {
        sync_wait(runtime, std::move(work));
        ADD_FAILURE() << verb;
      } catch (const error& failure) {
        EXPECT_EQ(failure.code(), errc::timed_out) << failure.what();
        EXPECT_THAT(failure.what(), HasSubstr(verb + " " + server.url("/a") + ": "));
      }
    EXPECT_EQ(web.stats().failures, all.size());
    EXPECT_THAT([&] { sync_wait(runtime, get_many(web, server.url("/a"), 3)); },
                Throws<error>(Property(&error::code, errc::timed_out)));
  }
}

static task<std::size_t> read_late(async_generator<buffer> chunks, std::chrono::nanoseconds pause) {
  std::size_t bytes = 0;
  while (auto* chunk = co_await chunks.next()) {
    if (bytes == 0) co_await sleep(pause);
    bytes += chunk->size();
  }
  co_return bytes;
}

TEST_P(Client, AStartedStreamHasNoDeadline) {
  const auto content = content_of(5'000'000);
  web_server server([&](auto& request) { return file_reply(request, content); });
  runtime runtime(options());
  client web({.deadline = 3s});
  EXPECT_EQ(sync_wait(runtime, read_late(web.stream(server.url()), 3100ms)), content.size());
}

TEST_P(Client, TheTimeoutOfAttemptsIsNotThatOfStreams) {
  const auto content = content_of(5'000'000);
  web_server server([&](auto& request) { return file_reply(request, content); });
  runtime runtime(options());
  client web({.timeout = 20ms});
  EXPECT_EQ(sync_wait(runtime, read_late(web.stream(server.url()), 100ms)), content.size());
  EXPECT_EQ(web.stats().retries, 0u);
}

TEST_P(Client, ABrokenStreamHasADeadlineAgain) {
  const auto content = content_of(5'000'000);
  std::atomic<int> calls = 0;
  web_server server([&](auto& request) {
    if (++calls > 1) return web_reply{.is_silent = true};
    auto reply = file_reply(request, content);
    reply.cut_at = 300'000;
    return reply;
  });
  runtime runtime(options());
  auto soon = quick();
  soon.stall_timeout = 1h;
  soon.deadline = 200ms;
  try {
    (void)sync_wait(runtime, joined(client(soon).stream(server.url("/a"))));
    ADD_FAILURE() << "nothing was thrown";
  } catch (const error& failure) {
    EXPECT_EQ(failure.code(), errc::timed_out) << failure.what();
  }
}

// Answers only when three requests are there, and another client's behind them.
class full_server {
 public:
  web_reply operator()(const web_request& request) {
    if (request.target == "/last") {
      while (running_ < 3) std::this_thread::yield();
      is_open_ = true;
      is_open_.notify_all();
      return file_reply(request, "x");
    }
    auto now = ++running_;
    for (auto before = most_.load(); before < now && !most_.compare_exchange_weak(before, now);) {}
    is_open_.wait(false);
    --running_;
    return file_reply(request, "x");
  }
  int most() const { return most_; }

 private:
  std::atomic<int> running_ = 0;
  std::atomic<int> most_ = 0;
  std::atomic<bool> is_open_ = false;
};

static task<> get_of_hosts(client limited, std::vector<std::string> urls, std::string last) {
  scope children(co_await this_context());
  for (std::size_t i = 0; i < 20; ++i) children.start(limited.get(urls[i % urls.size()]));
  (void)co_await client().get(std::move(last));
  co_await children.join();
}

TEST_P(Client, LimitsRequestsThatRunAtATime) {
  full_server answers;
  web_server server([&](auto& request) { return answers(request); });
  const auto other = "http://localhost:" + std::to_string(server.port()) + "/";
  runtime runtime(options());
  sync_wait(runtime,
            get_of_hosts(client({.requests = 3}), {server.url(), other}, server.url("/last")));
  EXPECT_EQ(answers.most(), 3);
  EXPECT_LE(server.connections(), 3u + 3 + 1);
  EXPECT_EQ(server.requests(), 21u);
}

TEST_P(Client, LimitsConnectionsToAHost) {
  full_server answers;
  web_server server([&](auto& request) { return answers(request); });
  runtime runtime(options());
  sync_wait(runtime,
            get_of_hosts(client({.connections_per_host = 3}), {server.url()}, server.url("/last")));
  EXPECT_EQ(answers.most(), 3);
  EXPECT_LE(server.connections(), 3u + 1);
  EXPECT_EQ(server.requests(), 21u);
}

// Half of it is more than the system keeps of a body that nobody reads.
static constexpr std::size_t large_body = 32 << 20;

// Holds bodies up when half of them has been sent, and answers "/last" when so many are held up.
class held_bodies {
 public:
  explicit held_bodies(int wanted) : wanted_(wanted) {}

  web_reply operator()(const web_request& request) {
    web_reply reply{.body = std::string(large_body, 'x')};
    if (request.target != "/last")
      reply.halfway = [this] { hold(); };
    else
      while (running_ < wanted_) std::this_thread::yield();
    return reply;
  }

  void let_go() {
    is_open_ = true;
    is_open_.notify_all();
  }

  int most() const { return most_; }

 private:
  void hold() {
    auto now = ++running_;
    for (auto before = most_.load(); before < now && !most_.compare_exchange_weak(before, now);) {}
    is_open_.wait(false);
    --running_;
  }

  const int wanted_;
  std::atomic<int> running_ = 0;
  std::atomic<int> most_ = 0;
  std::atomic<bool> is_open_ = false;
};

// Starts the work, and lets its bodies go when another client has received as long a one, which
// begins when as many are held up as there should be.
static task<> hold_up(held_bodies& bodies, std::vector<task<>> all, std::string last) {
  scope children(co_await this_context());
  for (auto& each : all) children.start(std::move(each));
  (void)co_await client().get(std::move(last));
  bodies.let_go();
  co_await children.join();
}

static task<std::size_t> bytes_of_stream(async_generator<buffer> chunks) {
  std::size_t bytes = 0;
  while (auto* chunk = co_await chunks.next()) bytes += chunk->size();
  co_return bytes;
}

TEST_P(Client, LimitsBytesInFlight) {
  for (bool streams : {false, true})
    for (int fit : {1, 2}) {
      held_bodies bodies(fit);
      web_server server([&](auto& request) { return bodies(request); }, false);
      client limited({.bytes_in_flight = static_cast<std::uint64_t>(fit) * large_body});
      runtime runtime(options());
      std::vector<task<>> all;
      for (int i = 0; i < 3; ++i)
        all.push_back(streams ? without_result(bytes_of_stream(
                                    limited.stream(server.url(), {.chunk_bytes = large_body})))
                              : without_result(limited.get(server.url())));
      sync_wait(runtime, hold_up(bodies, std::move(all), server.url("/last")));
      EXPECT_EQ(bodies.most(), fit) << (streams ? "streams" : "objects");
      EXPECT_EQ(limited.stats().bytes_in, 3 * large_body);
    }
}

// Takes a chunk, and no other while another body of the same length is received.
static task<> take_one_chunk(async_generator<buffer> chunks, std::string other) {
  auto* chunk = co_await chunks.next();
  EXPECT_NE(chunk, nullptr);
  auto got = co_await client().get(std::move(other));
  EXPECT_EQ(got.body().size(), large_body);
}

TEST_P(Client, AStreamThatNobodyReadsIsNotReceived) {
  std::atomic<bool> has_sent_half = false;
  web_server server([&](auto& request) {
    web_reply reply{.body = std::string(large_body, 'x')};
    if (request.target == "/read") reply.halfway = [&] { has_sent_half = true; };
    return reply;
  });
  runtime runtime(options());
  sync_wait(runtime, take_one_chunk(client().stream(server.url("/read")), server.url("/other")));
  EXPECT_FALSE(has_sent_half);
}

TEST_P(Client, StreamsABody) {
  const auto content = content_of(5'000'000);
  web_server server([&](auto& request) { return file_reply(request, content); });
  runtime runtime(options());
  client web;
  EXPECT_TRUE(sync_wait(runtime, joined(web.stream(server.url()))) == content);
  EXPECT_TRUE(sync_wait(runtime, joined(web.stream(server.url(), {.offset = 4'000'000}))) ==
              content.substr(4'000'000));
}

TEST_P(Client, AStreamThatBreaksOffIsContinued) {
  const auto content = content_of(5'000'000);
  std::atomic<std::size_t> calls = 0;
  web_server server([&](auto& request) {
    auto reply = file_reply(request, content);
    if (++calls < 8) reply.cut_at = 300'000 * calls;
    return reply;
  });
  runtime runtime(options());
  EXPECT_TRUE(sync_wait(runtime, joined(client(quick()).stream(server.url()))) == content);
}

TEST_P(Client, AStreamThatCannotBeContinuedIsAnError) {
  const auto content = content_of(5'000'000);
  web_server server([&](auto&) { return web_reply{.body = content, .cut_at = 3'000'000}; });
  runtime runtime(options());
  EXPECT_THAT([&] { (void)sync_wait(runtime, joined(client(quick()).stream(server.url("/a")))); },
              ThrowsMessage<error>(AllOf(HasSubstr("stream " + server.url("/a")),
                                         HasSubstr("without a strong entity tag"))));
}

static task<std::size_t> first_chunk_of(async_generator<buffer> chunks) {
  auto* chunk = co_await chunks.next();
  co_return chunk ? chunk->size() : 0;
}

TEST_P(Client, AStreamMayBeLeftAtAnyTime) {
  const auto content = content_of(5'000'000);
  web_server server([&](auto& request) { return file_reply(request, content); });
  runtime runtime(options());
  client web;
  for (int i = 0; i < 20; ++i)
    EXPECT_GT(sync_wait(runtime, first_chunk_of(web.stream(server.url()))), 0u);
}

static task<std::string> parts_of(client web, std::string url) {
  auto from = co_await web.open(std::move(url));
  auto one = co_await from->read_at(10, 5);
  auto two = co_await from->read_at(from->size() - 3, 3);
  co_return std::string(one.text()) + "|" + std::string(two.text());
}

TEST_P(Client, OpensAnObjectForRandomAccess) {
  const auto content = content_of(100'000);
  web_server server([&](auto& request) { return file_reply(request, content); });
  runtime runtime(options());
  EXPECT_EQ(sync_wait(runtime, parts_of(client(), server.url())),
            content.substr(10, 5) + "|" + content.substr(99'997));
}

// Waits until the server has no more than so many connections.
static void wait_for_closed(const web_server& server, std::size_t left) {
  while (server.open_connections() > left) std::this_thread::sleep_for(1ms);
}

TEST_P(Client, ItsFiguresAreMetrics) {
  web_server server([](auto& request) { return file_reply(request, "0123456789"); });
  runtime runtime(options());
  client web;
  (void)sync_wait(runtime, web.get(server.url()));
  metrics all;
  add(all, web.stats(), {{"client", "train"}});
  auto text = all.text();
  EXPECT_THAT(text, HasSubstr("# TYPE lade_http_requests_total counter"));
  EXPECT_THAT(text, HasSubstr("lade_http_requests_total{client=\"train\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("lade_http_received_bytes_total{client=\"train\"} 10\n"));
  EXPECT_THROW(add(all, web.stats(), {{"not a name", ""}}), error);
}

TEST_P(Client, ConnectionsThatNobodyUsesAreClosed) {
  web_server server([](auto& request) { return file_reply(request, "x"); });
  runtime runtime(options());
  client web({.connections_per_host = 4, .idle_timeout = 1s});
  for (int round = 0; round < 2; ++round) {
    sync_wait(runtime, get_many(web, server.url(), 40));
    wait_for_closed(server, 0);
  }
}

static task<> get_until_closed(client web, std::string url, const web_server& other) {
  while (other.open_connections() > 0) {
    (void)co_await web.get(url);
    co_await sleep(10ms);
  }
}

TEST_P(Client, ConnectionsThatNobodyUsesAreClosedBesideOthers) {
  web_server server([](auto& request) { return file_reply(request, "x"); });
  web_server busy([](auto& request) { return file_reply(request, "x"); }, false);
  runtime runtime(options());
  client web({.connections_per_host = 4, .idle_timeout = 1s});
  sync_wait(runtime, get_many(web, server.url(), 40));
  sync_wait(runtime, get_until_closed(web, busy.url(), server));
  EXPECT_EQ(server.open_connections(), 0u);
}

TEST_P(Client, AsManyConnectionsAreKeptAsWereUsedAtATime) {
  std::atomic<int> running = 0;
  std::atomic<bool> waits = true;
  constexpr int many = 200;  // more than are kept otherwise
  web_server server([&](auto& request) {
    if (++running == many) waits = false;
    while (waits) std::this_thread::sleep_for(1ms);
    return file_reply(request, "x");
  });
  auto one_reactor = options();
  one_reactor.reactors = 1;  // each reactor has separate connections
  runtime runtime(one_reactor);
  client web({.connections_per_host = many});
  sync_wait(runtime, get_many(web, server.url(), many));
  running = 0;
  waits = true;
  sync_wait(runtime, get_many(web, server.url(), many));
  EXPECT_EQ(server.connections(), static_cast<std::size_t>(many));
}

TEST_P(Client, ConcurrentRequestsReceiveTheirResponses) {
  web_server server([&](auto& request) {
    return file_reply(request, content_of(std::stoul(request.target.substr(1))));
  });
  auto one_reactor = options();
  one_reactor.reactors = 1;  // each reactor has separate connections
  runtime runtime(one_reactor);
  client web({.connections_per_host = 16});
  auto get_own = [](client from, std::string url, std::size_t bytes) -> task<> {
    auto got = co_await from.get(std::move(url));
    EXPECT_TRUE(got.body().text() == content_of(bytes));
  };
  auto get_all = [&](auto& one) -> task<> {
    scope children(co_await this_context());
    for (std::size_t i = 0; i < 500; ++i) {
      auto url = server.url("/" + std::to_string(i * 100));
      children.start(one(web, std::move(url), i * 100));
    }
    co_await children.join();
  };
  sync_wait(runtime, get_all(get_own));
  EXPECT_EQ(server.requests(), 500u);
  EXPECT_LE(server.connections(), 16u);
}

TEST(HttpOptions, ThatCannotWorkAreNamed) {
  EXPECT_THAT([] { client({.connections_per_host = 0}); },
              ThrowsMessage<error>(HasSubstr("make an HTTP client: connections_per_host is 0")));
  EXPECT_THAT([] { client({.idle_timeout = 0s}); },
              ThrowsMessage<error>(HasSubstr("idle_timeout")));
  for (auto endless : {std::chrono::milliseconds::max(), std::chrono::milliseconds::min()}) {
    EXPECT_THAT([&] { client({.connect_timeout = endless}); },
                ThrowsMessage<error>(AllOf(HasSubstr("connect_timeout is"),
                                           HasSubstr("it must be from 0 s to 100 years"))));
    EXPECT_THROW(client({.stall_timeout = endless}), error);
    EXPECT_THROW(client({.timeout = endless}), error);
  }
  EXPECT_THROW(client({.idle_timeout = std::chrono::seconds::max()}), error);
  for (auto name : {"lade\r\nX-Evil: 1"sv, "lade\n"sv, "a\0b"sv})
    EXPECT_THAT([&] { client({.user_agent = name}); },
                ThrowsMessage<error>("make an HTTP client: user_agent has a line break or a zero "
                                     "byte in it"));
  EXPECT_THROW(client({.ca_file = std::string_view("a\0b", 3)}), error);
  EXPECT_THAT([] { client({.ca_file = "/absent/ca.pem"}); },
              ThrowsMessage<error>("make an HTTP client: ca_file is /absent/ca.pem: No such file "
                                   "or directory"));
  EXPECT_THROW(client({.ca_directory = "/absent"}), error);
  EXPECT_THROW(client({.certificate = "/absent"}), error);
  EXPECT_THROW(client({.netrc_file = "/absent"}), error);
  EXPECT_THAT([] { client({.private_key = "key.pem"}); },
              ThrowsMessage<error>(HasSubstr("private_key without a certificate")));
  EXPECT_THAT([] { request("BREW", "http://a/"); },
              ThrowsMessage<error>(HasSubstr("no method 'BREW'")));
}

TEST(HttpOptions, UrlsOfOtherSchemesAreRefused) {
  runtime runtime;
  for (const std::string url : {"ftp://a/b", "a/b", "", "http://", "file:///etc/passwd"})
    EXPECT_THAT([&] { (void)sync_wait(runtime, client().get(url)); },
                ThrowsMessage<error>(HasSubstr("not a URL of http or https")));
}

// libcurl would take what stands before it.
TEST(HttpOptions, AZeroByteInAUrlOrAHeaderIsRefused) {
  runtime runtime;
  const std::string rest("\0b", 2);
  for (const std::string url : {"http://127.0.0.1:1/a", "http://127.0.0.1:1"})
    EXPECT_THAT([&] { (void)sync_wait(runtime, client().get(url + rest)); },
                ThrowsMessage<error>("open " + url + "\\x00b: a zero byte in it"));
  request what("GET", "http://127.0.0.1:1/a");
  what.headers.emplace_back("X-Name", "a" + rest);
  EXPECT_THAT([&] { (void)sync_wait(runtime, client().send(what)); },
              ThrowsMessage<error>(HasSubstr("send header X-Name: a line break or a zero byte")));
  EXPECT_EQ(redirected("http://host/a", "/b" + rest), "");
}

TEST_P(Client, TakesNoOtherPartForTheRestOfABody) {
  const auto content = content_of(1000);
  std::atomic<int> requests = 0;
  web_server server([&](auto& request) {
    auto reply = file_reply(request, content);
    auto number = requests++;
    if (number == 0) reply.cut_at = 500;
    if (number == 1) {
      reply = file_reply(web_request{}, content);
      reply.status = 206;
      reply.headers.emplace_back("Content-Range", "bytes 0-999/1000");
      reply.cut_at = 300;
    }
    return reply;
  });
  runtime runtime(options());
  EXPECT_TRUE(sync_wait(runtime, client(quick()).get(server.url())).body().text() == content);
}

TEST_P(Client, AnAnswerThatIsNoObjectIsAnError) {
  for (int status : {202, 204, 206, 299}) {
    web_server server([&](auto&) { return web_reply{.status = status, .body = "later"}; });
    runtime runtime(options());
    EXPECT_THAT([&] { (void)sync_wait(runtime, client(quick()).get(server.url())); },
                ThrowsMessage<error>(HasSubstr(std::to_string(status))));
    EXPECT_THROW((void)sync_wait(runtime, next_of(client(quick()).stream(server.url()))), error);
  }
}

TEST_P(Client, ARangeThatIsRefusedIsNoEmptyObject) {
  web_server server([](auto& request) {
    web_reply reply = file_reply(request, "0123456789");
    if (request.headers.count("range"))
      reply = {.status = 416, .headers = {{"Content-Range", "bytes */10"}}};
    return reply;
  });
  runtime runtime(options());
  EXPECT_THROW((void)sync_wait(runtime, client(quick()).open(server.url())), error);
  web_server empty(
      [](auto&) { return web_reply{.status = 416, .headers = {{"Content-Range", "bytes */0"}}}; });
  EXPECT_EQ(sync_wait(runtime, client(quick()).open(empty.url()))->size(), 0u);
}

TEST_P(Client, AReaderNoticesAnObjectThatChangesWithoutAStrongTag) {
  std::atomic<std::size_t> bytes = 1000;
  web_server server(
      [&](auto& request) { return file_reply(request, content_of(bytes), "W/\"1\""); });
  runtime runtime(options());
  auto object = sync_wait(runtime, client(quick()).open(server.url()));
  EXPECT_EQ(sync_wait(runtime, object->read_at(10, 5)).size(), 5u);
  for (auto changed : {1500u, 12u, 10u, 1u}) {
    bytes = changed;
    EXPECT_THAT([&] { (void)sync_wait(runtime, object->read_at(10, 5)); },
                Throws<error>(Property(&error::code, errc::changed)))
        << changed;
  }
}

TEST_P(Client, TheBodyOfARefusalIsReadUpToALimit) {
  web_server server([](auto&) {
    return web_reply{.status = 404, .body = std::string(20'000'000, 'x'), .is_chunked = true};
  });
  runtime runtime(options());
  client web;
  EXPECT_THAT([&] { (void)sync_wait(runtime, web.get(server.url())); },
              ThrowsMessage<error>(HasSubstr("404 Not Found: xxx")));
}

TEST_P(Client, RangesThatCannotBeAreRefused) {
  runtime runtime(options());
  client web(quick());
  for (auto range : {byte_range{5, 0}, byte_range{90, byte_range::to_end - 5}})
    EXPECT_THAT([&] { (void)sync_wait(runtime, web.get("http://127.0.0.1:1/a", range)); },
                ThrowsMessage<error>(HasSubstr("a range of")));
}

TEST_P(Client, RequestsThatCannotBeSentAsTheyAreAreRefused) {
  runtime runtime(options());
  client web(quick());
  const std::string url = "http://127.0.0.1:1/a";
  auto of = [&](const char* method) { return request(method, url); };
  auto sent = [&](request what) { (void)sync_wait(runtime, web.send(std::move(what))); };
  for (auto* method : {"GET", "HEAD", "DELETE"}) {
    auto what = of(method);
    what.body = buffer(1);
    EXPECT_THAT([&] { sent(what); },
                ThrowsMessage<error>(HasSubstr(url + ": only a PUT or POST has a body")));
  }
  for (auto* method : {"HEAD", "PUT", "POST", "DELETE"}) {
    auto what = of(method);
    what.range = {0, 5};
    EXPECT_THAT([&] { sent(what); }, ThrowsMessage<error>(HasSubstr("only a GET has a range")));
  }
  for (auto* own : {"Range", "Content-Length", "transfer-encoding"}) {
    auto what = of("PUT");
    what.headers.emplace_back(own, "5");
    EXPECT_THAT([&] { sent(what); },
                ThrowsMessage<error>(HasSubstr("is made of `range` and `body`")));
  }
  client authorized(quick());
  authorized.authorize("127.0.0.1", [](bool) -> task<std::string> { co_return ""; });
  EXPECT_THAT([&] { (void)sync_wait(runtime, authorized.get(url)); },
              ThrowsMessage<error>(HasSubstr("authorize 127.0.0.1:1: the token is empty")));
  auto part = of("GET");
  part.range = {0, 5};
  auto expected = [&](const char* doing, const char* why) {
    return ThrowsMessage<error>(std::string(doing) + " " + url + ": the request " + why);
  };
  auto opened = [&](const request& what) { (void)sync_wait(runtime, web.open(what)); };
  auto streamed = [&](const request& what) { (void)sync_wait(runtime, joined(web.stream(what))); };
  EXPECT_THAT([&] { opened(of("PUT")); }, expected("open", "is a PUT, not a GET"));
  EXPECT_THAT([&] { opened(part); }, expected("open", "already has a range"));
  EXPECT_THAT([&] { streamed(of("DELETE")); }, expected("stream", "is a DELETE, not a GET"));
  EXPECT_THAT([&] { streamed(part); }, expected("stream", "already has a range"));
  EXPECT_THAT([&] { (void)sync_wait(runtime, web.get_part(of("POST"))); },
              expected("get a part of", "is a POST, not a GET"));
  EXPECT_EQ(web.stats().requests, 0u);
}

TEST_P(Client, ARequestMayLimitItsBody) {
  const auto content = content_of(18 << 20);
  web_server server([&](auto& request) { return file_reply(request, content); });
  runtime runtime(options());
  client web;
  for (std::uint64_t most : {std::uint64_t{1000}, std::uint64_t{17} << 20}) {
    request what("GET", server.url("/a"));
    what.max_bytes = most;
    EXPECT_THAT([&] { (void)sync_wait(runtime, web.send(what)); },
                ThrowsMessage<error>(
                    HasSubstr("the body is longer than max_bytes, " + std::to_string(most))));
    what.max_bytes = content.size();
    EXPECT_EQ(sync_wait(runtime, web.send(what)).body().size(), content.size());
  }
}

TEST_P(Client, APostIsRepeatedOnlyIfItMayBe) {
  web_server server([](auto&) { return web_reply{.status = 503}; });
  runtime runtime(options());
  client web(quick());
  for (auto* method : {"POST", "PUT"}) {
    const request what(method, server.url("/a"));
    EXPECT_EQ(what.may_repeat, std::string(method) == "PUT");
    EXPECT_THROW((void)sync_wait(runtime, web.send(what)), error);
  }
  auto puts = server.seen().size() - 1;
  EXPECT_GT(puts, 1u);
  request again("POST", server.url("/a"));
  again.may_repeat = true;
  EXPECT_THROW((void)sync_wait(runtime, web.send(again)), error);
  EXPECT_EQ(server.seen().size(), 1 + 2 * puts);
}

static task<std::string> ask_for_token(client web, std::string url) {
  auto got = co_await web.get(std::move(url));
  co_return std::string(got.body().text());
}

TEST_P(Client, AFunctionForTokensMaySendRequestsItself) {
  web_server tokens([](auto&) { return web_reply{.body = "token"}; });
  web_server server([](auto& request) {
    return web_reply{.status = request.headers.count("authorization") ? 200 : 401};
  });
  auto few = quick();
  few.requests = 2;
  client web(few);
  web.authorize(server.host(),
                [&web, url = tokens.url()](bool) { return ask_for_token(web, url); });
  runtime runtime(options());
  sync_wait(runtime, get_many(web, server.url(), 16));
  EXPECT_EQ(server.requests(), 16u);
}

static task<std::size_t> get_within_a_stream(client web, std::string url) {
  auto chunks = web.stream(url);
  std::size_t bytes = 0;
  while (auto* chunk = co_await chunks.next()) {
    auto other = co_await web.get(url);
    bytes += chunk->size() + other.body().size();
  }
  co_return bytes;
}

TEST_P(Client, AnOpenStreamBlocksNoRequests) {
  web_server server([](auto& request) { return file_reply(request, content_of(1000)); });
  auto few = quick();
  few.connections_per_host = 1;
  few.requests = 1;
  runtime runtime(options());
  EXPECT_EQ(sync_wait(runtime, get_within_a_stream(client(few), server.url())), 2000u);
}

}  // namespace lade::io::http::client_test
