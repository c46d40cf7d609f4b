// The client among other programs: nginx, proxies, name servers, and the hosts of a model hub.

#include <lade/error.hpp>
#include <lade/io/http/client.hpp>
#include <lade/io/http/s3.hpp>
#include <lade/random.hpp>
#include <lade/runtime.hpp>
#include <lade/scope.hpp>
#include <lade/sync_wait.hpp>
#include <lade/this_context.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <latch>
#include <optional>
#include <regex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <curl/curl.h>
#include <netdb.h>
#include <sys/socket.h>

#include "../../../io/http/origin.hpp"
#include "../../../io/http/proxies.hpp"
#include "../../../io/http/resolver.hpp"
#include "../../support/coroutines.hpp"
#include "../../support/fault_proxy.hpp"
#include "../../support/nginx.hpp"
#include "../../support/reactors.hpp"
#include "../../support/seed.hpp"
#include "../../support/web_server.hpp"

namespace lade::io::http {

using namespace testing_support;
using namespace std::chrono_literals;
using test::fault_proxy;
using test::file_reply;
using test::nginx;
using test::test_authority;
using test::web_reply;
using test::web_request;
using test::web_server;
using test::wire_fault;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::ThrowsMessage;

// The name server of this program. It never answers for never.example until that is allowed, nor
// for fading.example after a first answer; then it has no answer. Other names below "example" are
// those of this machine.
struct name_server {
  std::atomic<int> asked = 0;
  std::atomic<int> fading = 0;  // how often fading.example was asked for
  std::atomic<bool> may_answer = false;
};
static name_server names;

int look_up_host(const char* host, addrinfo** found) {
  const std::string name = host;
  if (name == "never.example" || (name == "fading.example" && names.fading > 0)) {
    auto& asked = name == "never.example" ? names.asked : names.fading;
    ++asked;
    asked.notify_all();
    names.may_answer.wait(false);
    return EAI_AGAIN;
  }
  if (name == "fading.example") ++names.fading;
  if (!name.ends_with(".example")) return EAI_NONAME;
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICHOST;
  return getaddrinfo("127.0.0.1", nullptr, &hints, found);
}

static client_options quick_options() {
  client_options options;
  options.retry.attempts = 2;
  options.retry.pause = 1ms;
  return options;
}

static std::string port_of(const web_server& server) {
  return server.host().substr(server.host().find(':'));
}

static std::string message_of(runtime& where, client web, std::string url) {
  try {
    (void)sync_wait(where, web.get(std::move(url)));
  } catch (const error& failure) {
    return std::regex_replace(failure.what(), std::regex("example:[0-9]+"), "example:PORT");
  }
  return "nothing was thrown";
}

static task<std::string> joined_text(async_generator<buffer> chunks) {
  std::string all;
  while (auto* chunk = co_await chunks.next()) all += chunk->text();
  co_return all;
}

// What the process keeps of these names is not of a test.
static void look_up_all_names() {
  names.may_answer = true;
  runtime runtime;
  for (auto* name : {"hub.example", "cdn.example", "third.example", "other.example",
                     "never.example", "unknown.invalid"}) {
    auto asked = resolver::of_process().resolve(name);
    try {
      (void)sync_wait(runtime, std::move(asked));
    } catch (const error&) {}
  }
}

class Nginx : public ReactorTest {
 protected:
  static void SetUpTestSuite() { look_up_all_names(); }
  void SetUp() override {
    ReactorTest::SetUp();
    if (!test::has_nginx()) GTEST_SKIP() << "nginx or openssl is not installed";
  }
};
INSTANTIATE_TEST_SUITE_P(Both, Nginx,
                         testing::Values(reactor_kind::io_uring, reactor_kind::fallback),
                         reactor_name);

static std::string object_text(int number) {
  return std::string(static_cast<std::size_t>(number % 1000), 'x') + std::to_string(number);
}

// Gets objects until there are none left, one after the other.
static task<> get_objects(client web, std::string base, std::atomic<int>& left) {
  while (true) {
    int number = --left;
    if (number < 0) co_return;
    auto got = co_await web.get(base + std::to_string(number % 50));
    EXPECT_EQ(got.body().text(), object_text(number % 50));
  }
}

static task<> get_all_objects(client web, std::string base, int objects, int in_flight) {
  std::atomic<int> left = objects;
  scope children(co_await this_context());
  for (int i = 0; i < in_flight; ++i) children.start(get_objects(web, base, left));
  co_await children.join();
}

static void write_objects(const nginx& server) {
  for (int i = 0; i < 50; ++i) server.directory().write("www/" + std::to_string(i), object_text(i));
}

TEST_P(Nginx, ServesObjectsPartsAndStreamsOverOneConnection) {
  nginx server;
  std::string content(3'000'000, '\0');
  for (std::size_t i = 0; i < content.size(); ++i) content[i] = static_cast<char>(i * 31 + i / 251);
  server.directory().write("www/a", content);
  runtime runtime(options());
  client web(quick_options());
  auto url = server.url("127.0.0.1", "/a");
  for (int i = 0; i < 20; ++i) {
    EXPECT_TRUE(sync_wait(runtime, web.get(url)).body().text() == content);
    EXPECT_TRUE(
        sync_wait(runtime, web.get(url, {.offset = 1'000'000, .bytes = 5000})).body().text() ==
        content.substr(1'000'000, 5000));
    EXPECT_TRUE(sync_wait(runtime, joined_text(web.stream(url))) == content);
    EXPECT_EQ(sync_wait(runtime, web.head(url)).object_bytes(), content.size());
  }
  EXPECT_EQ(web.stats().retries, 0u);
  EXPECT_EQ(web.stats().connections, 1u);
  EXPECT_EQ(server.stop_and_count_connections(), 1u);
}

TEST_P(Nginx, ServesThousandsOfObjectsOverAsManyConnectionsAsAreInFlight) {
  nginx server;
  write_objects(server);
  runtime runtime({.threads = 2, .reactor = GetParam(), .reactors = 1});
  client web(quick_options());
  sync_wait(runtime, get_all_objects(web, server.url("127.0.0.1", "/"), 4000, 64));
  EXPECT_EQ(web.stats().requests, 4000u);
  EXPECT_LE(web.stats().connections, 64u);
  EXPECT_EQ(server.stop_and_count_connections(), web.stats().connections);
}

TEST_P(Nginx, ServesThousandsOfObjectsOverOneConnectionOfHttp2) {
  test_authority authority;
  nginx server("add_header X-Protocol $server_protocol;", authority.certificate("hub.example"));
  write_objects(server);
  runtime runtime({.threads = 2, .reactor = GetParam(), .reactors = 1});
  auto ca = authority.file();
  auto options = quick_options();
  options.ca_file = ca;
  options.http2 = true;
  client web(options);
  auto got = sync_wait(runtime, web.get(server.url("hub.example", "/7")));
  EXPECT_EQ(got.header("x-protocol"), "HTTP/2.0");
  sync_wait(runtime, get_all_objects(web, server.url("hub.example", "/"), 4000, 64));
  EXPECT_EQ(web.stats().requests, 4001u);
  EXPECT_EQ(server.stop_and_count_connections(), 1u);
}

TEST_P(Nginx, StreamsOverHttp1WhatItAnswersOverHttp2) {
  test_authority authority;
  nginx server("location / { return 200 $server_protocol; }", authority.certificate("hub.example"));
  runtime runtime({.threads = 2, .reactor = GetParam(), .reactors = 1});
  auto ca = authority.file();
  auto options = quick_options();
  options.ca_file = ca;
  options.http2 = true;
  client web(options);
  auto url = server.url("hub.example", "/a");
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(sync_wait(runtime, web.get(url)).body().text(), "HTTP/2.0");
    EXPECT_EQ(sync_wait(runtime, joined_text(web.stream(url))), "HTTP/1.1");
  }
}

static task<> get_and_count(client web, std::string url, std::atomic<int>& done) {
  (void)co_await web.get(std::move(url));
  ++done;
}

static task<> get_first_burst(client web, std::string url, std::atomic<int>& done) {
  scope children(co_await this_context());
  for (int i = 0; i < 8; ++i) children.start(get_and_count(web, url, done));
  co_await children.join();
}

TEST_P(Nginx, AStalledConnectionDoesNotBlockAFirstBurst) {
  test_authority authority;
  nginx server("", authority.certificate("hub.example"));
  server.directory().write("www/a", "there");
  fault_proxy network(server.port(), [](std::size_t connection) {
    return wire_fault{.what = connection == 0 ? wire_fault::kind::stall : wire_fault::kind::none};
  });
  runtime runtime({.threads = 2, .reactor = GetParam(), .reactors = 1});
  auto ca = authority.file();
  auto options = quick_options();
  options.ca_file = ca;
  options.http2 = true;
  options.stall_timeout = options.connect_timeout = 1h;
  std::atomic<int> done = 0;
  std::stop_source stop;
  std::jthread stopping([&] {
    while (done < 7) std::this_thread::yield();
    stop.request_stop();
  });
  auto url = "https://hub.example:" + std::to_string(network.port()) + "/a";
  auto burst = get_first_burst(client(options), url, done);
  EXPECT_EQ(code_of([&] { sync_wait(runtime, std::move(burst), stop.get_token()); }),
            errc::stopped);
  EXPECT_EQ(done, 7);
}

TEST_P(Nginx, IsKnownByTheDirectoryOfItsAuthority) {
  test_authority authority;
  nginx server("", authority.certificate("hub.example"));
  server.directory().write("www/a", "there");
  runtime runtime(options());
  auto options = quick_options();
  auto url = server.url("hub.example", "/a");
  EXPECT_THAT(message_of(runtime, client(options), url), HasSubstr("certificate"));
  auto folder = authority.folder();
  options.ca_directory = folder;
  EXPECT_EQ(sync_wait(runtime, client(options).get(url)).body().text(), "there");
}

TEST_P(Nginx, IsAStoreOfS3InPathStyleWithoutSignatures) {
  nginx server;
  server.directory().write("www/bucket/train/a.jpg", "0123456789");
  runtime runtime(options());
  const auto endpoint = server.url("127.0.0.1", "");
  const s3_store store({.endpoint = endpoint, .anonymous = true}, client(quick_options()));
  EXPECT_EQ(sync_wait(runtime, store.read("s3://bucket/train/a.jpg")).text(), "0123456789");
  auto reader = sync_wait(runtime, store.open("s3://bucket/train/a.jpg", false));
  EXPECT_EQ(reader->size(), 10u);
  EXPECT_EQ(sync_wait(runtime, reader->read_at(3, 4)).text(), "3456");
  EXPECT_EQ(sync_wait(runtime, joined_text(store.stream("s3://bucket/train/a.jpg", {.offset = 8}))),
            "89");
  EXPECT_EQ(sync_wait(runtime, store.open("s3://bucket/train/b.jpg", true)), nullptr);
}

TEST_P(Nginx, AuthenticatesClientsByTheirCertificates) {
  test_authority authority;
  auto ca = authority.file();
  auto mine = authority.certificate("trainer");
  nginx server("ssl_client_certificate " + ca + ";\nssl_verify_client on;",
               authority.certificate("hub.example"));
  server.directory().write("www/a", "there");
  runtime runtime(options());
  auto options = quick_options();
  options.ca_file = ca;
  auto url = server.url("hub.example", "/a");
  EXPECT_THAT(message_of(runtime, client(options), url),
              HasSubstr("get https://hub.example:PORT/a: 400 Bad Request (attempt"));
  options.certificate = mine;
  EXPECT_EQ(sync_wait(runtime, client(options).get(url)).body().text(), "there");
}

TEST_P(Nginx, RedirectsToOtherHostsSendNoClientCertificate) {
  test_authority authority;
  auto asks = "ssl_client_certificate " + authority.file() + ";\nssl_verify_client optional;\n";
  nginx other(asks + "location / { return 200 $ssl_client_verify; }",
              authority.certificate("cdn.example"));
  nginx server(asks + "location /b { return 302 " + other.url("cdn.example", "/a") +
                   "; } location / { return 200 $ssl_client_verify; }",
               authority.certificate("hub.example"));
  runtime runtime(options());
  auto options = quick_options();
  auto ca = authority.file(), mine = authority.certificate("trainer");
  options.ca_file = ca;
  options.certificate = mine;
  client web(options);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(sync_wait(runtime, web.get(server.url("hub.example", "/a"))).body().text(),
              "SUCCESS");
    EXPECT_EQ(sync_wait(runtime, web.get(server.url("hub.example", "/b"))).body().text(), "NONE");
  }
  EXPECT_EQ(sync_wait(runtime, web.get(other.url("cdn.example", "/a"))).body().text(), "SUCCESS");
}

TEST_P(Nginx, OfAnotherNameOrAuthorityIsRefused) {
  test_authority authority;
  nginx server("", authority.certificate("other.example"));
  server.directory().write("www/a", "there");
  runtime runtime(options());
  auto options = quick_options();
  EXPECT_EQ(message_of(runtime, client(options), server.url("other.example", "/a")),
            "get https://other.example:PORT/a: SSL peer certificate or SSH remote key was not OK: "
            "SSL certificate problem: unable to get local issuer certificate (attempt 1 of 2)");
  auto ca = authority.file();
  options.ca_file = ca;
  EXPECT_EQ(message_of(runtime, client(options), server.url("hub.example", "/a")),
            "get https://hub.example:PORT/a: SSL peer certificate or SSH remote key was not OK: "
            "SSL: no alternative certificate subject name matches target host name 'hub.example' "
            "(attempt 1 of 2)");
  EXPECT_EQ(
      sync_wait(runtime, client(options).get(server.url("other.example", "/a"))).body().text(),
      "there");
  options.verify = false;
  EXPECT_EQ(sync_wait(runtime, client(options).get(server.url("hub.example", "/a"))).body().text(),
            "there");
}

TEST_P(Nginx, MayNotRedirectToWhatIsNotEncrypted) {
  test_authority authority;
  nginx server("return 302 http://hub.example/b?sig=secret;", authority.certificate("hub.example"));
  runtime runtime(options());
  auto ca = authority.file();
  auto options = quick_options();
  options.ca_file = ca;
  EXPECT_EQ(message_of(runtime, client(options), server.url("hub.example", "/a")),
            "get https://hub.example:PORT/a: redirected from https to http://hub.example/b?sig=... "
            "(attempt 1 of 2)");
}

TEST_P(Nginx, MayCompressUpToTheLimit) {
  nginx server("gzip on; gzip_types *; gzip_min_length 1;");
  const std::string zeros(5'000'000, '\0');
  server.directory().write("www/zeros", zeros);
  runtime runtime(options());
  auto url = server.url("127.0.0.1", "/zeros");
  auto options = quick_options();
  EXPECT_TRUE(sync_wait(runtime, client(options).get(url)).body().text() == zeros);
  options.decompress = true;
  client web(options);
  auto got = sync_wait(runtime, web.get(url));
  EXPECT_EQ(got.header("content-encoding"), "gzip");
  EXPECT_TRUE(got.body().text() == zeros);
  options.max_bytes = zeros.size() - 1;
  EXPECT_THAT(message_of(runtime, client(options), url),
              HasSubstr("the body is longer than max_bytes, 4999999 (attempt 1 of 2)"));
}

TEST_P(Nginx, IsReachedThroughATunnelThatSeesNoSecrets) {
  test_authority authority;
  nginx server("", authority.certificate("hub.example"));
  server.directory().write("www/a", "there");
  web_server proxy([&](auto&) { return web_reply{.tunnel_to = server.port()}; });
  runtime runtime(options());
  auto ca = authority.file();
  auto address = "http://user:word@" + proxy.host();
  auto options = quick_options();
  options.ca_file = ca;
  options.proxy = address;
  request what("GET", server.url("hub.example", "/a"));
  what.headers.emplace_back("Authorization", "Bearer secret");
  EXPECT_EQ(sync_wait(runtime, client(options).send(what)).body().text(), "there");
  auto seen = proxy.seen().at(0);
  EXPECT_EQ(seen.method, "CONNECT");
  EXPECT_EQ(seen.target, "hub.example:" + std::to_string(server.port()));
  EXPECT_EQ(seen.headers.count("authorization"), 0u);
  EXPECT_EQ(seen.headers["proxy-authorization"], "Basic dXNlcjp3b3Jk");
}

// A variable of the environment, as long as this lives.
class set_variable {
 public:
  set_variable(const char* name, const std::string& value) : name_(name) {
    if (auto* before = std::getenv(name)) before_ = before;
    setenv(name, value.c_str(), 1);
  }
  set_variable(const set_variable&) = delete;
  ~set_variable() {
    if (before_)
      setenv(name_, before_->c_str(), 1);
    else
      unsetenv(name_);
  }

 private:
  const char* name_;
  std::optional<std::string> before_;
};

TEST_P(Nginx, IsReachedThroughTheTunnelThatTheEnvironmentNames) {
  test_authority authority;
  nginx server("", authority.certificate("hub.example"));
  server.directory().write("www/a", "there");
  auto ca = authority.file();
  auto options = quick_options();
  options.ca_file = ca;
  for (auto* name : {"https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"}) {
    web_server proxy([&](auto&) { return web_reply{.tunnel_to = server.port()}; });
    const set_variable https_proxy(name, proxy.url(""));
    runtime runtime(ReactorTest::options());
    auto url = "https://hub.example:" + std::to_string(server.port()) + "/a";
    EXPECT_EQ(sync_wait(runtime, client(options).get(url)).body().text(), "there");
    ASSERT_EQ(proxy.requests(), 1u) << name;
    EXPECT_EQ(proxy.seen()[0].method, "CONNECT");
    const set_variable no_proxy("no_proxy", "other.example, .EXAMPLE");
    EXPECT_EQ(sync_wait(runtime, client(options).get(url)).body().text(), "there");
    EXPECT_EQ(proxy.requests(), 1u) << name;
  }
}

// What nginx is asked over.
enum class wire { plain, tls, http2 };

// nginx behind a network that fails, with objects "/0" to "/7".
class faulty_network {
 public:
  static constexpr std::uint64_t objects = 8;

  faulty_network(wire how, fault_proxy::fault_function fault_of)
      : how_(how),
        server_("ssl_protocols TLSv1.3;",
                how == wire::plain ? "" : authority_.certificate("hub.example")),
        proxy_(server_.port(), std::move(fault_of)) {
    for (std::uint64_t i = 0; i < objects; ++i) {
      random draw(i);
      auto& content = contents_.emplace_back(200'000 - i * 20'000, '\0');
      for (auto& each : content) each = static_cast<char>(draw());
      server_.directory().write("www/" + std::to_string(i), content);
    }
  }

  const fault_proxy& proxy() const { return proxy_; }
  const std::string& content(std::uint64_t object) const { return contents_.at(object); }
  std::string url(std::uint64_t object) const {
    return (how_ == wire::plain ? "http://user:word@hub.example:"
                                : "https://user:word@hub.example:") +
           std::to_string(proxy_.port()) + "/" + std::to_string(object) + "?X-Amz-Signature=secret";
  }
  client make_client(client_options options) const {
    options.ca_file = ca_;
    options.http2 = how_ == wire::http2;
    return client(options);
  }

 private:
  wire how_;
  test_authority authority_;
  std::string ca_ = authority_.file();
  nginx server_;
  std::vector<std::string> contents_;
  fault_proxy proxy_;
};

// Nothing but TLS finds damage on the way.
static wire_fault random_fault(wire how, random& draw) {
  wire_fault fault;
  fault.what = static_cast<wire_fault::kind>(1 + draw.below(how == wire::plain ? 3 : 4));
  fault.of_request = draw.below(4) == 0;
  bool is_early = fault.of_request || draw.below(3) == 0;
  fault.at = draw.below(is_early ? 2'000 : 400'000);
  fault.bit = static_cast<unsigned>(draw.below(8));
  return fault;
}

static task<> get_one(client web, std::string url, const std::string& content) {
  auto got = co_await web.get(std::move(url));
  EXPECT_TRUE(got.body().text() == content);
}

static task<> stream_one(client web, std::string url, const std::string& content) {
  auto got = co_await joined_text(web.stream(std::move(url)));
  EXPECT_TRUE(got == content);
}

static task<> get_side_by_side(client web, const faulty_network& from) {
  scope children(co_await this_context());
  for (std::uint64_t i = 0; i < faulty_network::objects; ++i)
    children.start(get_one(web, from.url(i), from.content(i)));
  co_await children.join();
}

static task<> get_in_turn(client web, const faulty_network& from) {
  for (std::uint64_t i = 0; i < faulty_network::objects; ++i) {
    auto each = i % 2 == 0 ? get_one(web, from.url(i), from.content(i))
                           : stream_one(web, from.url(i), from.content(i));
    co_await std::move(each);
  }
}

static std::size_t open_descriptors() {
  std::filesystem::directory_iterator all("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

static void get_over_faults(wire how, std::uint64_t seed, const runtime_options& where) {
  constexpr std::size_t faults = 24;
  const auto descriptors = open_descriptors();
  {
    faulty_network network(how, [&](std::size_t connection) {
      random draw(seed, connection);
      return connection < faults ? random_fault(how, draw) : wire_fault{};
    });
    runtime runtime(where);
    auto options = quick_options();
    options.retry.attempts = 100;
    options.longest_pause = 1ms;
    options.stall_timeout = 100ms;
    auto web = network.make_client(options);
    std::uint64_t gets = 0;
    // A damaged byte that nobody reads leaves a connection for ever.
    for (int turn = 0; turn < 100 && network.proxy().connections() <= faults; ++turn) {
      sync_wait(runtime,
                how == wire::http2 ? get_side_by_side(web, network) : get_in_turn(web, network));
      gets += faulty_network::objects;
    }
    EXPECT_GT(network.proxy().struck(), 0u);
    auto stats = web.stats();
    EXPECT_EQ(stats.failures, 0u);
    EXPECT_GT(stats.retries, 0u);
    EXPECT_EQ(stats.requests, gets + stats.retries);
    // A client that aborts an attempt while a connection is made does not count that connection.
    EXPECT_GE(stats.connections, network.proxy().used());
    EXPECT_LE(stats.connections, network.proxy().connections());
    EXPECT_EQ(runtime.memory().stats().used_bytes, 0u);
  }
  EXPECT_EQ(open_descriptors(), descriptors);
}

TEST_P(Nginx, DeliversEveryByteOverConnectionsThatFailAnywhere) {
  auto seed = test::new_seed();
  for (auto how : {wire::plain, wire::tls, wire::http2}) {
    SCOPED_TRACE("seed " + std::to_string(seed) + ", wire " +
                 std::to_string(static_cast<int>(how)));
    get_over_faults(how, seed, options());
  }
}

// What is said where every connection fails at the same byte: 300 is of the handshake if there is
// one, 50,000 of the object.
struct wire_failure {
  wire how;
  wire_fault::kind what;
  std::uint64_t at;
  const char* message;
};

static std::vector<wire_failure> wire_failures() {
  using enum wire;
  using enum wire_fault::kind;
  const char* const shook = "SSL connect error: ";
  const char* const received = "Failure when receiving data from the peer: ";
  const char* const was_reset = "reset by peer|Broken pipe|SSL_ERROR_SYSCALL";
  const char* const was_cut =
      "Transferred a partial file: |unexpected eof while reading";  // of older libcurl, and newer
  const char* const waited = "Timeout was reached: no byte for 100 ms";
  return {{plain, cut, 50'000, "Transferred a partial file: transfer closed with "},
          {plain, reset, 50'000, was_reset},
          {plain, stall, 0, waited},
          {plain, stall, 50'000, waited},
          {tls, cut, 300, shook},
          {tls, cut, 50'000, was_cut},
          {tls, reset, 300, was_reset},
          {tls, reset, 50'000, was_reset},
          {tls, stall, 300, waited},
          {tls, stall, 50'000, waited},
          {tls, damage, 300, shook},
          {tls, damage, 50'000, "decryption failed or bad record mac"},
          {http2, cut, 300, shook},
          {http2, cut, 50'000, was_cut},
          {http2, reset, 300, was_reset},
          {http2, reset, 50'000, was_reset},
          {http2, stall, 300, waited},
          {http2, stall, 50'000, waited},
          {http2, damage, 300, shook},
          {http2, damage, 50'000, received}};
}

TEST_P(Nginx, NetworkFailuresAreReportedWithoutSecrets) {
  runtime runtime(options());
  for (auto& each : wire_failures()) {
    faulty_network network(
        each.how, [&](std::size_t) { return wire_fault{.what = each.what, .at = each.at}; });
    auto options = quick_options();
    options.stall_timeout = each.what == wire_fault::kind::stall ? 100ms : 30s;
    auto web = network.make_client(options);
    auto message = message_of(runtime, web, network.url(0));
    EXPECT_THAT(message,
                testing::StartsWith(each.how == wire::plain
                                        ? "get http://hub.example:PORT/0?X-Amz-Signature=...: "
                                        : "get https://hub.example:PORT/0?X-Amz-Signature=...: "));
    EXPECT_THAT(message,
                AllOf(testing::ContainsRegex(each.message), testing::EndsWith("(attempt 2 of 2)")));
    EXPECT_THAT(message, AllOf(Not(HasSubstr("secret")), Not(HasSubstr("word"))));
    EXPECT_EQ(network.proxy().connections(), 2u) << message;
    EXPECT_EQ(web.stats().failures, 1u);
  }
}

TEST_P(Nginx, StopsDuringAStall) {
  for (auto how : {wire::plain, wire::tls, wire::http2})
    for (std::uint64_t at : {0u, 10u, 1'000u, 50'000u}) {
      faulty_network network(
          how, [&](std::size_t) { return wire_fault{.what = wire_fault::kind::stall, .at = at}; });
      runtime runtime(options());
      auto options = quick_options();
      options.stall_timeout = options.connect_timeout = 1h;
      auto web = network.make_client(options);
      std::stop_source stop;
      std::jthread stopping([&] {
        while (network.proxy().struck() == 0) std::this_thread::yield();
        stop.request_stop();
      });
      auto stalled = get_side_by_side(web, network);
      EXPECT_EQ(code_of([&] { sync_wait(runtime, std::move(stalled), stop.get_token()); }),
                errc::stopped)
          << static_cast<int>(how) << " " << at;
      EXPECT_EQ(runtime.memory().stats().used_bytes, 0u);
    }
}

static std::string part_by_curl(CURLU* url, CURLUPart part, unsigned flags = 0) {
  char* text = nullptr;
  if (curl_url_get(url, part, &text, flags) != CURLUE_OK) return {};
  std::string copy(text);
  curl_free(text);
  return copy;
}

// Who may see credentials must not depend on who reads the URL.
TEST(Origin, IsWhereLibcurlSendsTheRequest) {
  const char* const schemes[] = {"http://", "https://", "HTTP://", "ftp://", "http:/", "http:"};
  const char* const hosts[] = {"a.example",
                               "A.Example.",
                               "127.0.0.1",
                               "127.1",
                               "0177.0.0.1",
                               "256.0.0.1",
                               "1.2.3.4.5",
                               "0x7f.1",
                               "0",
                               "[::1]",
                               "a_b",
                               "-a",
                               "a-b.c",
                               "user:p@b.example",
                               "a.example@b.example",
                               "",
                               "a b",
                               "xn--a",
                               "ä.example",
                               "a\\b",
                               "1a.example",
                               "001.2.3.4",
                               "1.2.3.04",
                               "1..2.3",
                               "a%41",
                               "255.255.255.255"};
  const char* const ports[] = {"",       ":",      ":80", ":080", ":65535",
                               ":65536", ":99999", ":8x", ":-1",  ":123456"};
  const char* const rests[] = {
      "", "/", "/a?b#c", "?a", "#a", "/@b.example/", "\\@b.example", "?@c.example:1/"};
  for (const std::string scheme : schemes)
    for (const std::string host : hosts)
      for (const std::string port : ports)
        for (const std::string rest : rests) {
          auto url = scheme + host + port + rest;
          auto* parsed = curl_url();
          bool is_good = curl_url_set(parsed, CURLUPART_URL, url.c_str(), 0) == CURLUE_OK;
          auto name = part_by_curl(parsed, CURLUPART_HOST);
          std::ranges::transform(name, name.begin(),
                                 [](unsigned char c) { return std::tolower(c); });
          auto protocol = part_by_curl(parsed, CURLUPART_SCHEME);
          is_good = is_good && !name.empty() && (protocol == "http" || protocol == "https");
          try {
            const origin found(url);
            EXPECT_TRUE(is_good) << url;
            EXPECT_EQ(found.host, name) << url;
            EXPECT_EQ(found.scheme, protocol) << url;
            EXPECT_EQ(found.port, part_by_curl(parsed, CURLUPART_PORT, CURLU_DEFAULT_PORT)) << url;
          } catch (const error&) {
            EXPECT_FALSE(is_good) << url;
          }
          curl_url_cleanup(parsed);
        }
}

class Servers : public ReactorTest {
 protected:
  static void SetUpTestSuite() { look_up_all_names(); }
};
INSTANTIATE_TEST_SUITE_P(Both, Servers,
                         testing::Values(reactor_kind::io_uring, reactor_kind::fallback),
                         reactor_name);

TEST_P(Servers, AProxyIsAskedForTheWholeUrl) {
  web_server proxy([](auto& request) { return file_reply(request, "for " + request.target); });
  web_server server([](auto& request) { return file_reply(request, "directly"); });
  runtime runtime(options());
  auto address = proxy.url("");
  auto options = quick_options();
  options.proxy = address;
  options.no_proxy = "127.0.0.1";
  client web(options);
  EXPECT_EQ(sync_wait(runtime, web.get("http://unknown.invalid/a?b=c")).body().text(),
            "for http://unknown.invalid/a?b=c");
  EXPECT_EQ(sync_wait(runtime, web.get(server.url())).body().text(), "directly");
}

TEST_P(Servers, TheEnvironmentNamesProxies) {
  web_server proxy([](auto& request) { return file_reply(request, "for " + request.target); });
  web_server server([](auto& request) { return file_reply(request, "directly"); });
  for (auto* name : {"http_proxy", "all_proxy", "ALL_PROXY"})
    for (auto* exempting : {"no_proxy", "NO_PROXY"}) {
      const set_variable http_proxy(name, proxy.url(""));
      const set_variable no_proxy(exempting, "127.0.0.1,hub.example");
      runtime runtime(options());
      client web(quick_options());
      EXPECT_EQ(sync_wait(runtime, web.get("http://unknown.invalid/a")).body().text(),
                "for http://unknown.invalid/a");
      EXPECT_EQ(sync_wait(runtime, web.get(server.url())).body().text(), "directly");
      auto by_name = "http://hub.example" + port_of(server) + "/";
      EXPECT_EQ(sync_wait(runtime, web.get(by_name)).body().text(), "directly");
      EXPECT_EQ(sync_wait(runtime, web.get("http://unknown.invalid/b")).body().text(),
                "for http://unknown.invalid/b");
    }
}

TEST_P(Servers, ProxiesOfAnotherSchemeAreNotAsked) {
  web_server server([](auto& request) { return file_reply(request, "directly"); });
  const set_variable https_proxy("https_proxy", "http://127.0.0.1:1");
  const set_variable upper("HTTP_PROXY", "http://127.0.0.1:1");  // may be a header, see CGI
  runtime runtime(options());
  auto url = "http://hub.example" + port_of(server) + "/";
  EXPECT_EQ(sync_wait(runtime, client(quick_options()).get(url)).body().text(), "directly");
}

TEST(Proxies, NoProxyMatchesHostsAsLibcurlDoes) {
  auto leads = [](const char* no_proxy, const char* host) {
    return proxies("http://proxy.example:1", no_proxy).lead_to(origin(host));
  };
  EXPECT_TRUE(leads("other.example", "http://a.example/"));
  EXPECT_FALSE(leads("*", "http://a.example/"));
  EXPECT_TRUE(leads("*.example", "http://a.example/"));
  for (auto* exempt : {"a.example", "example", ".example", "x, a.EXAMPLE", "x a.example y",
                       "a.example.", ".a.example"}) {
    EXPECT_FALSE(leads(exempt, "https://a.example/")) << exempt;
    EXPECT_FALSE(leads(exempt, "http://A.Example.:80/")) << exempt;
    EXPECT_TRUE(leads(exempt, "http://ba.examples/")) << exempt;
  }
  EXPECT_TRUE(leads("a.example", "http://ba.example/"));
  EXPECT_TRUE(leads("b.a.example", "http://a.example/"));
  EXPECT_FALSE(leads("a.example", "http://b.a.example/"));
  EXPECT_TRUE(leads(", .,", "http://a.example/"));
}

TEST_P(Servers, AProxyThatRefusesOrIsNotThereIsNamedWithoutItsPassword) {
  web_server proxy([](auto&) { return web_reply{.status = 403}; });
  runtime runtime(options());
  auto options = quick_options();
  auto address = "http://user:word@" + proxy.host();
  options.proxy = address;
  EXPECT_EQ(message_of(runtime, client(options), "https://hub.example/a"),
            "get https://hub.example/a: Failure when receiving data from the peer: CONNECT "
            "tunnel failed, response 403 (attempt 2 of 2)");
  options.proxy = "http://user:word@127.0.0.1:1";
  EXPECT_THAT(message_of(runtime, client(options), "http://hub.example/a"),
              AllOf(HasSubstr("Failed to connect to 127.0.0.1 port 1"), Not(HasSubstr("word"))));
}

TEST_P(Servers, PasswordsOfNetrcGoToTheirHostOnly) {
  web_server cdn([](auto& request) { return file_reply(request, "there"); });
  web_server hub([&](auto&) {
    return web_reply{.status = 302,
                     .headers = {{"Location", "http://cdn.example" + port_of(cdn) + "/b"}}};
  });
  testing_support::temp_dir directory;
  auto file = directory.write("netrc",
                              "machine hub.example login user password word\n"
                              "machine cdn.example login other password secret\n");
  runtime runtime(options());
  auto options = quick_options();
  options.netrc_file = file;
  client web(options);
  EXPECT_EQ(sync_wait(runtime, web.get("http://hub.example" + port_of(hub) + "/a")).body().text(),
            "there");
  EXPECT_EQ(hub.seen().at(0).headers["authorization"], "Basic dXNlcjp3b3Jk");
  EXPECT_EQ(cdn.seen().at(0).headers.count("authorization"), 0u);
  (void)sync_wait(runtime, web.get("http://cdn.example" + port_of(cdn) + "/c"));
  EXPECT_EQ(cdn.seen().at(1).headers["authorization"], "Basic b3RoZXI6c2VjcmV0");
  (void)sync_wait(runtime, web.get("http://third.example" + port_of(cdn) + "/d"));
  EXPECT_EQ(cdn.seen().at(2).headers.count("authorization"), 0u);
}

TEST_P(Servers, PasswordsThatLibcurlAddsAreNotShownWhereAServerRepeatsThem) {
  const std::string netrc_pair = "netrc-user:netrc-s3cr3t";
  const std::string proxy_pair = "proxy-user:proxy-s3cr3t";
  std::string said;
  web_server server([&](auto& request) {
    auto value = [&](const char* name) {
      return request.headers.contains(name) ? request.headers.at(name) : std::string("none");
    };
    auto text = said.empty() ? value("authorization") + " " + value("proxy-authorization") : said;
    return web_reply{.status = 403, .body = "I refuse " + text + " here"};
  });
  testing_support::temp_dir directory;
  auto file =
      directory.write("netrc", "machine hub.example login netrc-user password netrc-s3cr3t\n");
  runtime runtime(options());
  auto options = quick_options();
  options.netrc_file = file;
  auto address = "http://" + proxy_pair + "@" + server.host();
  options.proxy = address;
  client web(options);
  for (const std::string text : {"", "bmV0cmMtdXNlcjpuZXRyYy1zM2NyM3Q=", "netrc-s3cr3t",
                                 "proxy-s3cr3t", "the user netrc-user:netrc-s3cr3t"}) {
    said = text;
    auto message = message_of(runtime, web, "http://hub.example/a");
    EXPECT_THAT(message, HasSubstr("403 Forbidden: I refuse "));
    EXPECT_THAT(message, HasSubstr(" here"));
    for (auto* secret : {"s3cr3t", "bmV0cmMtdXNlcjpu", "cHJveHktdXNlcjpw"})
      EXPECT_THAT(message, Not(HasSubstr(secret))) << text;
  }
}

TEST_P(Servers, AnInvalidProxyIsReportedWithoutItsPassword) {
  runtime runtime(options());
  for (const std::string proxy :
       {"http://pu:SECRET@PROXY@127.0.0.1:99999", "pu:SECRET@PROXY@127.0.0.1:99999",
        "http://pu:SEC/RET@127.0.0.1:99999"}) {
    auto options = quick_options();
    options.proxy = proxy;
    auto message = message_of(runtime, client(options), "http://hub.example/a");
    EXPECT_THAT(message,
                AllOf(Not(HasSubstr("SEC")), Not(HasSubstr("RET")), Not(HasSubstr("PROXY@"))))
        << proxy;
  }
}

// As a model hub does it: a redirect within the hub, then one to a signed URL of its CDN.
TEST_P(Servers, PasswordsOfTheUsersNetrcAreSentOnRequest) {
  web_server hub([](auto& request) { return file_reply(request, "there"); });
  testing_support::temp_dir home;
  home.write(".netrc", "machine hub.example login user password word\n");
  const set_variable own("HOME", home.path().string());
  runtime runtime(options());
  auto options = quick_options();
  for (bool is_wanted : {false, true}) {
    options.netrc = is_wanted;
    (void)sync_wait(runtime, client(options).get("http://hub.example" + port_of(hub) + "/a"));
  }
  EXPECT_EQ(hub.seen().at(0).headers.count("authorization"), 0u);
  EXPECT_EQ(hub.seen().at(1).headers["authorization"], "Basic dXNlcjp3b3Jk");
}

TEST_P(Servers, TheTokenOfAModelHubIsNotSentToItsCdn) {
  const std::string content = "0123456789";
  web_server cdn([&](auto& request) { return file_reply(request, content); });
  web_server hub([&](auto& request) {
    auto to = request.target == "/model/resolve/main/weights"
                  ? std::string("/api/resolve-cache/weights")
                  : "http://cdn.example" + port_of(cdn) + "/xet/1?Signature=abc&Expires=9";
    return web_reply{.status = 307, .headers = {{"Location", to}}};
  });
  runtime runtime(options());
  client web(quick_options());
  web.authorize("hub.example" + port_of(hub),
                [](bool) -> task<std::string> { co_return "secret"; });
  request what("GET", "http://hub.example" + port_of(hub) + "/model/resolve/main/weights");
  what.headers.emplace_back("X-Own", "value");
  what.headers.emplace_back("Cookie", "session=1");
  what.range = {2, 4};
  EXPECT_EQ(sync_wait(runtime, web.send(what)).body().text(), "2345");
  what.range = {};
  EXPECT_EQ(sync_wait(runtime, joined_text(web.stream(what, {.offset = 7}))), "789");
  for (auto& seen : hub.seen()) {
    EXPECT_EQ(seen.headers.at("authorization"), "Bearer secret");
    EXPECT_EQ(seen.headers.at("x-own"), "value");
  }
  EXPECT_EQ(hub.requests(), 4u);
  EXPECT_EQ(cdn.requests(), 2u);
  for (auto& seen : cdn.seen()) {
    for (auto* own : {"authorization", "x-own", "cookie"}) EXPECT_EQ(seen.headers.count(own), 0u);
    EXPECT_EQ(seen.headers.at("host"), "cdn.example" + port_of(cdn));
    EXPECT_EQ(seen.headers.count("range"), 1u);
  }
}

TEST_P(Servers, AFailureBehindARedirectNamesWhereItWasWithoutTheSignature) {
  web_server cdn([](auto&) { return web_reply{.status = 403, .body = "Request has expired"}; });
  web_server hub([&](auto&) {
    return web_reply{
        .status = 302,
        .headers = {{"Location", "http://cdn.example" + port_of(cdn) + "/x?Signature=abc"}}};
  });
  runtime runtime(options());
  EXPECT_EQ(
      message_of(runtime, client(quick_options()), "http://hub.example" + port_of(hub) + "/a"),
      "get http://hub.example:PORT/a: 403 Forbidden: Request has expired, redirected to "
      "http://cdn.example:PORT/x?Signature=... (attempt 1 of 2)");
}

TEST_P(Servers, ANameThatNobodyKnowsIsNamed) {
  runtime runtime(options());
  EXPECT_EQ(message_of(runtime, client(quick_options()), "http://unknown.invalid/a"),
            "get http://unknown.invalid/a: resolve unknown.invalid: Name or service not known "
            "(attempt 2 of 2)");
}

static task<> get_and_forget(client web, std::string url) {
  (void)co_await web.get(std::move(url));
}

static task<> get_of_both(client web, std::string never, std::string there) {
  scope children(co_await this_context());
  for (int i = 0; i < 10; ++i) children.start(get_and_forget(web, never));
  for (int i = 0; i < 100; ++i) {
    auto got = co_await web.get(there);
    EXPECT_EQ(got.body().text(), "there");
  }
  co_await children.join();
}

// A stop, and requests to other hosts, while a name server never answers.
static void wait_for_a_name_that_never_comes(const runtime_options& how) {
  web_server server([](auto& request) { return file_reply(request, "there"); });
  names.may_answer = false;
  auto asked = names.asked.load();
  {
    runtime runtime(how);
    std::stop_source stop;
    std::jthread stopping([&] {
      while (server.requests() < 100 || names.asked == asked) std::this_thread::yield();
      stop.request_stop();
    });
    auto few = quick_options();
    few.requests = 4;  // that wait for the name have none of these
    auto both = get_of_both(client(few), "http://never.example/a",
                            "http://hub.example" + port_of(server) + "/a");
    EXPECT_EQ(code_of([&] { sync_wait(runtime, std::move(both), stop.get_token()); }),
              errc::stopped);
    EXPECT_EQ(server.requests(), 100u);
    EXPECT_EQ(names.asked, asked + 1);  // one thread asks for all ten
  }
  names.may_answer = true;
  names.may_answer.notify_all();
  runtime later(how);
  EXPECT_THROW(sync_wait(later, get_and_forget(client(quick_options()), "http://never.example/")),
               error);
}

// Has answers to fading.example that are no longer fresh.
class Resolver : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    for (auto* each : {all_kept, none_kept}) {
      names.fading = 0;
      EXPECT_EQ(resolve(*each), "127.0.0.1");
    }
  }

  static std::string resolve(resolver& by) {
    runtime runtime;
    return sync_wait(runtime, by.resolve("fading.example"));
  }

  static inline auto* const all_kept = new resolver({.fresh = 0s, .kept = 1h});
  static inline auto* const none_kept = new resolver({.fresh = 0s, .kept = 0s});
};

TEST_F(Resolver, AKeptAnswerIsReturnedWithoutAWait) {
  names.may_answer = false;
  names.fading = 1;
  EXPECT_EQ(resolve(*all_kept), "127.0.0.1");  // a thread asks again, and gets no answer
  names.fading.wait(1);
  EXPECT_EQ(resolve(*all_kept), "127.0.0.1");
  EXPECT_EQ(names.fading, 2);
  names.may_answer = true;  // a failure
  names.may_answer.notify_all();
  while (names.fading < 4) EXPECT_EQ(resolve(*all_kept), "127.0.0.1");
}

TEST_F(Resolver, AnExpiredAnswerIsLookedUpAgain) {
  names.may_answer = true;
  EXPECT_THAT([] { resolve(*none_kept); },
              ThrowsMessage<error>(HasSubstr("resolve fading.example: ")));
}

TEST_P(Servers, ASilentNameServerDelaysNoOtherRequestAndNoStop) {
  wait_for_a_name_that_never_comes(options());
}

TEST_P(Servers, ASilentNameServerDelaysNoOtherRequestBesideAProxy) {
  const set_variable http_proxy("http_proxy", "http://127.0.0.1:1");
  const set_variable no_proxy("no_proxy", "example");
  wait_for_a_name_that_never_comes(options());
}

}  // namespace lade::io::http
