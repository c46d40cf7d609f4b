#include "../../../io/http/failures.hpp"

#include <lade/error.hpp>
#include <lade/io/http/client.hpp>
#include <lade/runtime.hpp>
#include <lade/scope.hpp>
#include <lade/sync_wait.hpp>
#include <lade/this_context.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <map>
#include <mutex>
#include <regex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "../../../io/http/attempt.hpp"
#include "../../../io/http/byte_permits.hpp"
#include "../../../io/http/escapes.hpp"
#include "../../support/coroutines.hpp"
#include "../../support/crc32c_text.hpp"
#include "../../support/reactors.hpp"
#include "../../support/web_server.hpp"

namespace lade::io::http::failures_test {

using namespace testing_support;
using namespace std::chrono_literals;
using test::crc32c_text;
using test::file_reply;
using test::web_reply;
using test::web_request;
using test::web_server;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;
using headers = std::vector<std::pair<std::string, std::string>>;

// Options that let tests of failures end soon.
static client_options two_attempts() {
  client_options options;
  options.retry.attempts = 2;
  options.retry.pause = 1ms;
  options.longest_pause = 2ms;
  return options;
}

static std::string text_of_bytes(std::size_t bytes) {
  std::string content(bytes, '\0');
  for (std::size_t i = 0; i < bytes; ++i) content[i] = static_cast<char>(i * 31 + i / 251);
  return content;
}

static task<> take_bytes(byte_permits& permits, std::uint64_t bytes, std::vector<int>& order,
                         int number) {
  co_await permits.acquire(bytes);
  order.push_back(number);
}

static task<> join(scope& children) { co_await children.join(); }

TEST(BytePermits, AreGrantedInRequestOrder) {
  byte_permits permits(100);
  std::vector<int> order;
  scope children;
  children.start(take_bytes(permits, 60, order, 0));
  children.start(take_bytes(permits, 50, order, 1));
  children.start(take_bytes(permits, 10, order, 2));  // would fit, but came later
  EXPECT_FALSE(permits.try_acquire(1));
  EXPECT_THAT(order, ElementsAre(0));
  permits.release(60);
  EXPECT_THAT(order, ElementsAre(0, 1, 2));
  EXPECT_TRUE(permits.try_acquire(40));
  EXPECT_FALSE(permits.try_acquire(1));
  sync_wait(join(children));
}

TEST(BytePermits, MoreThanTheLimitIsGrantedAlone) {
  byte_permits permits(100);
  std::vector<int> order;
  scope children;
  children.start(take_bytes(permits, 10, order, 0));
  children.start(take_bytes(permits, 1000, order, 1));
  children.start(take_bytes(permits, 1, order, 2));
  EXPECT_THAT(order, ElementsAre(0));
  permits.release(10);
  EXPECT_THAT(order, ElementsAre(0, 1));
  permits.release(1000);
  EXPECT_THAT(order, ElementsAre(0, 1, 2));
  EXPECT_TRUE(permits.try_acquire(99));
  sync_wait(join(children));
}

TEST(BytePermits, AStoppedWaiterHasNone) {
  byte_permits permits(100);
  ASSERT_TRUE(permits.try_acquire(100));
  std::vector<int> order;
  std::stop_source source;
  auto stopped = code_of([&] {
    scope children;
    children.start(in(stopped_by(source), take_bytes(permits, 10, order, 0)));
    source.request_stop();
    sync_wait(join(children));
  });
  EXPECT_EQ(stopped, errc::stopped);
  permits.release(100);
  EXPECT_TRUE(order.empty());
  EXPECT_TRUE(permits.try_acquire(100));
}

TEST(RetryAfter, IsANumberOfSecondsOrADate) {
  using std::chrono::seconds;
  auto now = std::chrono::system_clock::from_time_t(784111777);  // Sun, 06 Nov 1994 08:49:37 GMT
  auto parse = [&](const header_list& given) {
    response_head head;
    head.status = 503;
    head.headers = given;
    return retry_after(head, now);
  };
  EXPECT_EQ(parse({}), std::nullopt);
  EXPECT_EQ(parse({{"Retry-After", "120"}}), seconds(120));
  EXPECT_EQ(parse({{"Retry-After", "Sun, 06 Nov 1994 08:50:37 GMT"}}), seconds(60));
  EXPECT_EQ(parse({{"Retry-After", "Sunday, 06-Nov-94 08:50:37 GMT"}}), seconds(60));
  EXPECT_EQ(parse({{"Retry-After", "Sun Nov  6 08:50:37 1994"}}), seconds(60));
  EXPECT_EQ(parse({{"Retry-After", "Sun, 06 Nov 1994 08:00:00 GMT"}}), seconds(0));
  EXPECT_EQ(parse({{"Retry-After", "Sun, 06 Nov 1994 09:00:07 GMT"},
                   {"Date", "Sun, 06 Nov 1994 09:00:00 GMT"}}),
            seconds(7));  // by the server's clock
  EXPECT_EQ(parse({{"Retry-After", "Sun, 06 Nov 19194 08:00:00 GMT"}}), seconds(4'294'967'295));
  for (auto* wrong : {"", "soon", "-1", "1.5", "12 monkeys"})
    EXPECT_EQ(parse({{"Retry-After", wrong}}), std::nullopt) << wrong;
  EXPECT_EQ(parse({{"Retry-After", std::string(1000, '9')}}), std::nullopt);
}

TEST(PauseBeforeNext, GrowsAndLosesARandomPart) {
  client_options options;
  options.retry.pause = 100ms;
  options.longest_pause = 1s;
  const failed_attempt failure{};
  EXPECT_EQ(pause_before_next(options, failure, 1, 0), 100ms);
  EXPECT_EQ(pause_before_next(options, failure, 1, 0.5), 75ms);
  EXPECT_EQ(pause_before_next(options, failure, 2, 0), 200ms);
  EXPECT_EQ(pause_before_next(options, failure, 4, 0.5), 600ms);
  EXPECT_EQ(pause_before_next(options, failure, 5, 0), 1s);
  std::set<std::chrono::nanoseconds> seen;
  for (int i = 0; i < 100; ++i) seen.insert(pause_before_next(options, failure, 3));
  EXPECT_GT(seen.size(), 90u);
  EXPECT_GE(*seen.begin(), 200ms);
  EXPECT_LE(*seen.rbegin(), 400ms);
}

TEST(PauseBeforeNext, IsNoShorterThanTheServerSays) {
  client_options options;
  options.retry.pause = 100ms;
  failed_attempt failure{};
  failure.retry_after = 7s;
  EXPECT_EQ(pause_before_next(options, failure, 1, 0.5), 7s);
  failure.retry_after = 1h;
  EXPECT_EQ(pause_before_next(options, failure, 1, 0.5), 30s);  // longest_pause
  failure.retry_after = 0s;
  EXPECT_EQ(pause_before_next(options, failure, 1, 0.5), 75ms);
}

static task<std::string> joined(async_generator<buffer> chunks) {
  std::string all;
  while (auto* chunk = co_await chunks.next()) all += chunk->text();
  co_return all;
}

static task<> get_many(client web, std::string url, int count) {
  scope children(co_await this_context());
  for (int i = 0; i < count; ++i) children.start(web.get(url));
  co_await children.join();
}

class Failures : public ReactorTest {};
INSTANTIATE_TEST_SUITE_P(Both, Failures,
                         testing::Values(reactor_kind::io_uring, reactor_kind::fallback),
                         reactor_name);

static task<> get_equal(client web, std::string url, const std::string& content) {
  auto got = co_await web.get(url);
  EXPECT_TRUE(got.body().text() == content);
  auto part = co_await web.get(url, {.offset = 1000, .bytes = 3000});
  EXPECT_TRUE(part.body().text() == content.substr(1000, 3000));
  auto streamed = co_await joined(web.stream(url));
  EXPECT_TRUE(streamed == content);
}

TEST_P(Failures, FewBytesInFlightHoldNothingUpForEver) {
  const auto content = text_of_bytes(400'000);
  for (bool is_chunked : {false, true}) {
    web_server server([&](auto& request) {
      auto reply = file_reply(request, content);
      reply.is_chunked = is_chunked && reply.status == 200;
      return reply;
    });
    runtime runtime(options());
    for (const std::uint64_t limit : {1U, 300'000U, 900'000U}) {
      client web({.bytes_in_flight = limit});
      auto get_all = [&](auto& one) -> task<> {
        scope children(co_await this_context());
        for (int i = 0; i < 8; ++i) children.start(one(web, server.url(), content));
        co_await children.join();
      };
      sync_wait(runtime, get_all(get_equal));
    }
  }
}

TEST_P(Failures, AStopEndsWaitsForBytesInFlight) {
  web_server server(
      [](auto&) { return web_reply{.body = text_of_bytes(10'000), .stall_at = 5000}; });
  runtime runtime(options());
  std::stop_source stop;
  std::jthread stopping([&] {
    while (server.requests() < 20) std::this_thread::yield();
    stop.request_stop();
  });
  auto all = get_many(client({.bytes_in_flight = 1}), server.url(), 20);
  EXPECT_EQ(code_of([&] { sync_wait(runtime, std::move(all), stop.get_token()); }), errc::stopped);
}

static std::string refusal_of(runtime& where, client web, request what) {
  try {
    (void)sync_wait(where, web.send(std::move(what)));
  } catch (const error& failure) {
    return failure.what();
  }
  return "nothing was thrown";
}

// A server that repeats a part of the request in its refusal.
static web_reply repeat(const std::string& text) {
  return {.status = 403, .body = "I do not know " + text + " here\nmore"};
}

TEST_P(Failures, SecretsThatAServerRepeatsAreNotShown) {
  const std::string repeated[] = {"authorization", "x-api-key", "cookie", "short"};
  runtime runtime(options());
  for (auto& name : repeated) {
    web_server server([&](auto& request) {
      auto value = request.headers.at(name);
      if (name == "authorization") value = "token " + value.substr(value.find(' ') + 1);
      if (name == "cookie") value = value.substr(value.find('=') + 1);
      return repeat(value);
    });
    client web(two_attempts());
    web.authorize(server.host(), [](bool) -> task<std::string> { co_return "s3cr3t-token"; });
    request what("GET", server.url("/a"));
    what.headers.emplace_back("X-Api-Key", "s3cr3t+key");
    what.headers.emplace_back("Cookie", "session=s3cr3t_cookie");
    what.headers.emplace_back("Short", "know");
    auto message = refusal_of(runtime, web, what);
    EXPECT_THAT(message, testing::Not(HasSubstr("s3cr3t"))) << name;
    EXPECT_THAT(message, HasSubstr("403 Forbidden: I do not know ")) << name;
    if (name == "short") continue;
    EXPECT_THAT(message, HasSubstr("... here (attempt 1 of 2)")) << name;
  }
}

TEST_P(Failures, SecretsOfAUrlThatAServerRepeatsAreNotShown) {
  runtime runtime(options());
  const auto query = std::string("?prefix=open&X-Amz-Signature=s3cr3t%2Bsig&pin=1234");
  for (const std::string text : {"HEADER", "user:p/s3cr3t", "p/s3cr3t", "p%2Fs3cr3t", query.c_str(),
                                 "s3cr3t+sig", "prefix=open, 1234"}) {
    web_server server([&](auto& request) {
      return repeat(text == "HEADER" ? request.headers.at("authorization") : text);
    });
    request what("GET", "http://user:p%2Fs3cr3t@" + server.host() + "/a" + query);
    auto message = refusal_of(runtime, client(two_attempts()), what);
    EXPECT_THAT(message, testing::Not(HasSubstr("s3cr3t"))) << text;
    EXPECT_THAT(message, testing::Not(HasSubstr("1234"))) << text;
    EXPECT_THAT(message, testing::Not(HasSubstr("dXNlcjpwL3MzY3IzdA"))) << text;
    EXPECT_THAT(message, HasSubstr("403 Forbidden: I do not know ")) << text;
    if (!text.starts_with("prefix")) continue;
    EXPECT_THAT(message, HasSubstr("know prefix=open, ... here"));
  }
}

TEST_P(Failures, SecretsThatAServerRepeatsWithEscapesAreNotShown) {
  runtime runtime(options());
  for (const std::string text :
       {"s3cr3t/k&y", "s3cr3t\\/k&y", "s3cr3t\\u002fk\\u0026y", "s3cr3t/k&amp;y",
        "s3cr3t&#x2F;k&#38;y", "s3cr3t%2fk%26y", "s3cr3t%2Fk&y", "\\u00733cr3t/k&amp;y"}) {
    web_server server([&](auto&) { return repeat(text); });
    request what("GET", server.url("/a"));
    what.headers.emplace_back("X-Api-Key", "s3cr3t/k&y");
    EXPECT_THAT(refusal_of(runtime, client(two_attempts()), what),
                HasSubstr("403 Forbidden: I do not know ... here (attempt 1 of 2)"))
        << text;
  }
}

TEST(Escapes, AreResolvedWhereTheyAreWhole) {
  auto plain = [](std::string_view text) { return unescape(text).plain; };
  EXPECT_EQ(plain(R"(a\/\"\u0041%41&amp;&lt;&#65;&#x41;&apos;)"), R"(a/"AA&<AA')");
  for (std::string_view same : {"100 %", "%4", "%zz", "%ff", "\\", "\\x", "\\u00e4", "\\u004",
                                "a & b", "&other;", "&#;", "&#x;", "&#300;", "&"})
    EXPECT_EQ(plain(same), same);
}

TEST(Escapes, ThatTheEndCutsOffAreFound) {
  for (std::string_view escape : {"%2F", "\\/", "\\u002f", "&amp;", "&#x2F;", "&#38;"}) {
    EXPECT_EQ(cut_escape_bytes(std::string("ab") + std::string(escape)), 0u) << escape;
    for (std::size_t bytes = 1; bytes < escape.size(); ++bytes)
      EXPECT_EQ(cut_escape_bytes(std::string("ab") + std::string(escape.substr(0, bytes))), bytes)
          << escape;
  }
  EXPECT_EQ(cut_escape_bytes("a & long enough"), 0u);
  EXPECT_EQ(cut_escape_bytes(""), 0u);
}

TEST_P(Failures, ATokenThatIsTheUserOfAUrlIsNotShown) {
  runtime runtime(options());
  for (const std::string password : {"", ":", ":x-oauth-basic"}) {
    for (bool header : {true, false}) {
      web_server server([&](auto& request) {
        return repeat(header ? request.headers.at("authorization") : "s3cr3t-token");
      });
      request what("GET", "http://s3cr3t-token" + password + "@" + server.host() + "/a");
      auto message = refusal_of(runtime, client(two_attempts()), what);
      EXPECT_THAT(message, testing::Not(HasSubstr("s3cr3t"))) << password;
      EXPECT_THAT(message, testing::Not(HasSubstr("czNjcjN0LXRva2Vu"))) << password;
      EXPECT_THAT(message, HasSubstr("403 Forbidden: I do not know ")) << password;
    }
  }
}

// Of a long refusal, the beginning is kept.
TEST_P(Failures, TheBeginningOfASecretIsNotShownEither) {
  const std::string token = "s3cr3t-0123456789-abcdefghij";
  runtime runtime(options());
  for (std::size_t kept = 0; kept <= token.size() + 1; ++kept) {
    const std::string before = "<Error><Code>No</Code>", message = "<Message>Bad ";
    auto blanks = std::string(1024 - before.size() - message.size() - kept, ' ');
    web_server server([&](auto&) {
      return web_reply{.status = 403,
                       .body = before + blanks + message + token + "</Message></Error>"};
    });
    client web(two_attempts());
    web.authorize(server.host(), [&](bool) -> task<std::string> {
      return [](std::string is) -> task<std::string> { co_return is; }(token);
    });
    EXPECT_THAT(
        refusal_of(runtime, web, request("GET", server.url("/a"))),
        testing::AllOf(HasSubstr("403 Forbidden: No, Bad"), testing::Not(HasSubstr("Bad s"))))
        << kept;
  }
}

TEST_P(Failures, AFormThatAServerRepeatsIsNotShown) {
  web_server server([](auto&) { return repeat("the identity s3cr3t&more"); });
  runtime runtime(options());
  request what("POST", server.url("/a"));
  const std::string form = "Action=Ask&Token=s3cr3t%26more";
  what.headers.emplace_back("Content-Type", "application/x-www-form-urlencoded");
  what.body = buffer(form.size());
  std::memcpy(what.body.data(), form.data(), form.size());
  EXPECT_THAT(refusal_of(runtime, client(two_attempts()), what),
              HasSubstr("403 Forbidden: I do not know the identity ... here"));
}

static const headers checksums_of_digits[] = {
    {{"x-amz-checksum-crc32c", "4waSgw=="}},
    {{"X-Amz-Checksum-CRC64NVME", "rosUhgp5mIg="}, {"x-amz-checksum-type", "FULL_OBJECT"}},
    {{"x-amz-checksum-sha256", "FeKw08M4keuw8e9gnsQZQgwg4yDOlMZfvIwzEkSOsiU="}},
    {{"x-goog-hash", "crc32c=4waSgw=="}, {"x-goog-hash", "md5=JfnnlDI7RTiF9RgfG2JNCw=="}},
    {{"x-goog-hash", "crc32c=4waSgw==,md5=JfnnlDI7RTiF9RgfG2JNCw=="}},
    {{"x-goog-hash", "md5=JfnnlDI7RTiF9RgfG2JNCw=="},
     {"x-goog-stored-content-encoding", "identity"}},
    {{"Content-MD5", "JfnnlDI7RTiF9RgfG2JNCw=="}},
    {{"Digest", "unixsum=30637, SHA-256=FeKw08M4keuw8e9gnsQZQgwg4yDOlMZfvIwzEkSOsiU="}},
    {{"Digest", "md5=JfnnlDI7RTiF9RgfG2JNCw=="}},
    {{"Repr-Digest", "sha-512=:AAAA:, sha-256=:FeKw08M4keuw8e9gnsQZQgwg4yDOlMZfvIwzEkSOsiU=:"}},
};

TEST_P(Failures, BodiesAreComparedWithTheChecksumsOfTheirResponses) {
  for (auto& stated : checksums_of_digits) {
    std::atomic<int> calls = 0;
    web_server server([&](auto&) {
      return web_reply{.headers = stated, .body = ++calls == 1 ? "123456780" : "123456789"};
    });
    runtime runtime(options());
    client web(two_attempts());
    EXPECT_EQ(sync_wait(runtime, web.get(server.url())).body().text(), "123456789");
    EXPECT_EQ(web.stats().verified, 2u) << stated[0].first;
    EXPECT_EQ(web.stats().retries, 1u) << stated[0].first;
    EXPECT_EQ(sync_wait(runtime, joined(web.stream(server.url()))), "123456789");
    EXPECT_EQ(web.stats().verified, 3u) << stated[0].first;
    (void)sync_wait(runtime, web.head(server.url()));
    EXPECT_EQ(web.stats().verified, 3u) << stated[0].first;
  }
}

TEST_P(Failures, ChecksumsOfOtherBytesAreNotCompared) {
  const headers others[] = {
      {{"x-amz-checksum-crc32c", "AAAAAA==-3"}},
      {{"x-amz-checksum-crc32c", "AAAAAA=="}, {"x-amz-checksum-type", "COMPOSITE"}},
      {{"x-amz-checksum-sha256", "AAAA"}},
      {{"x-amz-checksum-crc32", "AAAAAA=="}},
      {{"x-goog-hash", "crc32c=AAAAAA=="}, {"x-goog-stored-content-encoding", "gzip"}},
      {{"Digest", "sha-256"}, {"Repr-Digest", ",=,sha-256=:,"}, {"x-goog-hash", ""}},
      {}};
  for (auto& stated : others) {
    web_server server([&](auto&) { return web_reply{.headers = stated, .body = "123456789"}; });
    runtime runtime(options());
    client web(two_attempts());
    EXPECT_EQ(sync_wait(runtime, web.get(server.url())).body().text(), "123456789");
    EXPECT_EQ(sync_wait(runtime, joined(web.stream(server.url()))), "123456789");
    EXPECT_EQ(web.stats().verified, 0u);
  }
  web_server server([&](auto& request) {
    auto reply = file_reply(request, "123456789");
    reply.headers.emplace_back("x-amz-checksum-crc32c", "AAAAAA==");
    return reply;
  });
  runtime runtime(options());
  client web(two_attempts());
  EXPECT_EQ(sync_wait(runtime, web.get(server.url(), {.offset = 1, .bytes = 2})).body().text(),
            "23");
  EXPECT_EQ(sync_wait(runtime, joined(web.stream(server.url(), {.offset = 7}))), "89");
  EXPECT_EQ(web.stats().verified, 0u);
  client indifferent({.verify_checksums = false});
  EXPECT_EQ(sync_wait(runtime, indifferent.get(server.url())).body().text(), "123456789");
}

TEST_P(Failures, ABodyThatWasContinuedIsComparedAsAWhole) {
  const auto content = text_of_bytes(700'000);
  auto damaged = content;
  damaged[1] = 'X';
  for (bool is_damaged : {false, true}) {
    std::atomic<int> calls = 0;
    web_server server([&](auto& request) {
      auto reply = file_reply(request, is_damaged && calls == 0 ? damaged : content);
      if (reply.status == 200)
        reply.headers.emplace_back("x-amz-checksum-crc32c", crc32c_text(content));
      if (++calls % 2 == 1) reply.cut_at = 300'000;
      return reply;
    });
    runtime runtime(options());
    auto often = two_attempts();
    often.retry.attempts = 10;
    client web(often);
    EXPECT_TRUE(sync_wait(runtime, web.get(server.url())).body().text() == content);
    EXPECT_EQ(web.stats().verified, is_damaged ? 2u : 1u);
    if (is_damaged) continue;
    EXPECT_TRUE(sync_wait(runtime, joined(web.stream(server.url()))) == content);
    EXPECT_EQ(web.stats().verified, 2u);
  }
}

TEST_P(Failures, AServerThatIgnoresIfMatchMixesNoObjects) {
  const auto content = text_of_bytes(400'000);
  std::atomic<int> calls = 0;
  web_server server([&](auto& request) {
    auto with_tag = request;
    with_tag.headers.erase("if-match");
    auto call = ++calls;
    auto reply = file_reply(with_tag, content, "\"v" + std::to_string(call) + "\"");
    if (call % 2 == 1) reply.cut_at = 150'000;
    return reply;
  });
  runtime runtime(options());
  client web(two_attempts());
  EXPECT_THAT([&] { (void)sync_wait(runtime, web.get(server.url())); },
              ThrowsMessage<error>(HasSubstr("the object has changed while it was read")));
  EXPECT_THAT([&] { (void)sync_wait(runtime, joined(web.stream(server.url()))); },
              ThrowsMessage<error>(HasSubstr("the object has changed while it was read")));
  request what("GET", server.url());
  what.if_match = "\"v0\"";
  calls = 1;
  EXPECT_THAT([&] { (void)sync_wait(runtime, web.send(what)); },
              ThrowsMessage<error>(HasSubstr("the object has changed while it was read")));
  EXPECT_EQ(server.seen().back().headers["if-match"], "\"v0\"");
  EXPECT_THAT([&] { (void)sync_wait(runtime, joined(web.stream(what))); },
              testing::Throws<error>());
  EXPECT_EQ(server.seen().at(server.requests() - 2).headers["if-match"], "\"v0\"");
}

// The rest is of another entity, which the server does not say.
TEST_P(Failures, ARestWithoutAnEntityTagOrOfAnotherLengthIsNotJoinedToABody) {
  struct rest {
    std::string range;
    std::string etag;
    std::string why;
  };
  const rest rests[] = {
      {"50-99/100", "", "the response lacks the entity tag"},
      {"50-119/120", "", "the response lacks the entity tag"},
      {"50-119/120", "\"v1\"", "the server states that the same entity has 100 bytes and 120"},
  };
  for (auto& each : rests) {
    SCOPED_TRACE(each.range + " " + each.etag);
    std::atomic<bool> sends_all = false;
    web_server server([&](auto& request) -> web_reply {
      if (request.headers.contains("range")) {
        auto bytes = each.range.ends_with("120") ? 70u : 50u;
        web_reply reply{.status = 206, .body = std::string(bytes, 'b')};
        reply.headers = {{"Content-Range", "bytes " + each.range}};
        if (!each.etag.empty()) reply.headers.emplace_back("ETag", each.etag);
        sends_all = true;
        return reply;
      }
      auto reply = file_reply(request, std::string(100, 'a'));
      if (!sends_all) reply.cut_at = 50;
      return reply;
    });
    runtime runtime(options());
    client web(two_attempts());
    EXPECT_THAT([&] { (void)sync_wait(runtime, web.get(server.url())); },
                ThrowsMessage<error>(HasSubstr(each.why)));
    sends_all = false;
    EXPECT_THAT([&] { (void)sync_wait(runtime, joined(web.stream(server.url()))); },
                ThrowsMessage<error>(HasSubstr(each.why)));
    sends_all = false;
    auto patient = two_attempts();
    patient.retry.attempts = 3;
    auto whole = sync_wait(runtime, client(patient).get(server.url()));
    EXPECT_EQ(whole.body().text(), std::string(100, 'a'));
  }
}

// A server that sends the rest of a body in pieces of any size, without the length of the whole.
TEST_P(Failures, ARestThatIsSentInPiecesIsAskedForUntilItIsWhole) {
  const auto content = text_of_bytes(1000);
  web_server server([&](auto& request) -> web_reply {
    if (!request.headers.contains("range")) {
      auto reply = file_reply(request, content);
      reply.cut_at = 300;
      return reply;
    }
    auto first = request.range(content.size()).first;
    auto piece = content.substr(first, 300);
    auto last = first + piece.size() - 1;
    return {.status = 206,
            .headers = {{"Content-Range",
                         "bytes " + std::to_string(first) + "-" + std::to_string(last) + "/*"},
                        {"ETag", "\"v1\""}},
            .body = piece};
  });
  runtime runtime(options());
  auto patient = two_attempts();
  patient.retry.attempts = 5;
  client web(patient);
  auto whole = sync_wait(runtime, web.get(server.url()));
  EXPECT_EQ(whole.body().text(), content);
  EXPECT_EQ(whole.status(), 200);
  EXPECT_EQ(whole.header("content-length"), "1000");
  EXPECT_TRUE(sync_wait(runtime, joined(web.stream(server.url()))) == content);
  EXPECT_THAT([&] { (void)sync_wait(runtime, client(two_attempts()).get(server.url())); },
              ThrowsMessage<error>(HasSubstr("the rest that the server sent lacks 400 bytes")));
}

TEST_P(Failures, AStreamDoesNotEndBeforeTheLengthThatWasSaid) {
  web_server server([&](auto& request) -> web_reply {
    if (request.headers.contains("range"))
      return {.status = 416, .headers = {{"Content-Range", "bytes */50"}}};
    auto reply = file_reply(request, std::string(100, 'a'));
    reply.cut_at = 50;
    return reply;
  });
  runtime runtime(options());
  EXPECT_THAT(
      [&] { (void)sync_wait(runtime, joined(client(two_attempts()).stream(server.url()))); },
      ThrowsMessage<error>(HasSubstr("416")));
}

TEST_P(Failures, ADecompressedStreamIsNotContinuedAndPartsAreNotDecompressed) {
  const std::string gzip_of_hello =
      std::string("\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03", 10) +
      std::string("\xcb\x48\xcd\xc9\xc9\x07\x00\x86\xa6\x10\x36\x05\x00\x00\x00", 15);
  std::atomic<bool> is_cut = true;
  web_server server([&](auto& request) {
    auto reply = file_reply(request, gzip_of_hello);
    reply.headers.emplace_back("Content-Encoding", "gzip");
    if (is_cut) reply.cut_at = gzip_of_hello.size() - 4;
    return reply;
  });
  runtime runtime(options());
  auto options = two_attempts();
  options.decompress = true;
  client web(options);
  EXPECT_THAT([&] { (void)sync_wait(runtime, joined(web.stream(server.url()))); },
              ThrowsMessage<error>(HasSubstr("cannot be continued")));
  is_cut = false;
  EXPECT_EQ(sync_wait(runtime, joined(web.stream(server.url()))), "hello");
  EXPECT_EQ(sync_wait(runtime, web.get(server.url())).body().text(), "hello");
  EXPECT_EQ(sync_wait(runtime, web.get(server.url(), {.offset = 1, .bytes = 3})).body().text(),
            gzip_of_hello.substr(1, 3));
  EXPECT_EQ(server.seen().back().headers.count("accept-encoding"), 0u);
}

TEST_P(Failures, AChunkedBodyIsContinuedBeyondTheMemoryItHad) {
  const auto content = text_of_bytes(1'000'000);
  std::atomic<int> calls = 0;
  web_server server([&](auto& request) {
    auto reply = file_reply(request, content);
    reply.is_chunked = true;
    if (++calls < 4) reply.cut_at = 200'000;
    return reply;
  });
  runtime runtime(options());
  auto often = two_attempts();
  often.retry.attempts = 10;
  EXPECT_TRUE(sync_wait(runtime, client(often).get(server.url())).body().text() == content);
}

static task<> get_as(client web, std::string url) { (void)co_await web.get(std::move(url)); }

static task<> stream_as(client web, std::string url) {
  auto text = co_await joined(web.stream(std::move(url)));
  EXPECT_EQ(text, "there");
}

static task<> get_by_number_date_and_stream(client web, const web_server& server) {
  scope children(co_await this_context());
  children.start(get_as(web, server.url("/seconds")));
  children.start(get_as(web, server.url("/date")));
  children.start(stream_as(web, server.url("/streamed")));
  co_await children.join();
}

TEST_P(Failures, AttemptsWaitForTheRetryAfterHeader) {
  using clock = std::chrono::steady_clock;
  std::mutex mutex;
  std::map<std::string, std::vector<clock::time_point>> seen;
  web_server server([&](const web_request& request) -> web_reply {
    std::lock_guard lock(mutex);
    auto& times = seen[request.target];
    times.push_back(clock::now());
    if (times.size() > 1) return file_reply(request, "there");
    if (request.target != "/date") return {.status = 503, .headers = {{"Retry-After", "1"}}};
    return {.status = 429,
            .headers = {{"Date", "Sun, 06 Nov 1994 08:49:37 GMT"},
                        {"Retry-After", "Sun, 06 Nov 1994 08:49:38 GMT"}}};
  });
  runtime runtime(options());
  auto patient = two_attempts();
  patient.longest_pause = 30s;
  sync_wait(runtime, get_by_number_date_and_stream(client(patient), server));
  ASSERT_EQ(seen.size(), 3u);
  for (auto& [target, times] : seen) {
    ASSERT_EQ(times.size(), 2u) << target;
    EXPECT_GE(times[1] - times[0], 1s) << target;
  }
}

// What a server does, and what its user reads. URL and HOST stand for the server's; numbers of
// milliseconds are not compared.
struct fault {
  const char* name;
  web_reply reply;
  std::string message;
  std::string streamed = {};  // where a stream says something else than at which byte it was
};

static std::vector<fault> faults() {
  const std::string body = "0123456789";
  const headers wrong{{"x-amz-checksum-crc32c", "AAAAAA=="}};
  const headers right{{"x-amz-checksum-crc32c", crc32c_text(body)}};
  const headers tagged{{"ETag", "\"v1\""}};
  const auto shorter = "the body has the CRC32C " + crc32c_text(body.substr(0, 9)) +
                       ", the server states " + crc32c_text(body);
  return {
      {"resets",
       {.resets = true},
       "Failure when receiving data from the peer: Recv failure: Connection reset by peer (attempt "
       "2 of 2)"},
      {"closes without an answer",
       {.raw = ""},
       "Server returned nothing (no headers, no data): Empty reply from server (attempt 2 of 2)"},
      {"closes in the status line",
       {.raw = "HTTP/1."},
       "Server returned nothing (no headers, no data): Empty reply from server (attempt 2 of 2)"},
      {"closes in the headers",
       {.raw = "HTTP/1.1 200 OK\r\nContent-Le"},
       "Transferred a partial file: the headers end too early (attempt 2 of 2)"},
      {"speaks no HTTP",
       {.raw = "220 mail.example ESMTP\r\n"},
       "Unsupported protocol: Received HTTP/0.9 when not allowed (attempt 1 of 2)"},
      {"never answers",
       {.is_silent = true},
       "Timeout was reached: no byte for 100 ms (attempt 2 of 2)"},
      {"stalls in the body",
       {.body = body, .stall_at = 4},
       "Timeout was reached: no byte for 100 ms (attempt 2 of 2)",
       "Timeout was reached: no byte for 100 ms; without a strong entity tag it cannot be "
       "continued (at byte 4, attempt 1 of 2)"},
      {"ends too early",
       {.body = body, .cut_at = 9},
       "Transferred a partial file: transfer closed with 1 bytes remaining to read (attempt 2 of "
       "2)",
       "Transferred a partial file: transfer closed with 1 bytes remaining to read; without a "
       "strong entity tag it cannot be continued (at byte 9, attempt 1 of 2)"},
      {"ends too early, may be continued",
       {.headers = tagged, .body = body, .cut_at = 9},
       "the server sent another part than bytes 9- (attempt 2 of 2)",
       "the server did not send the part from byte 9 on (at byte 9, attempt 2 of 2)"},
      {"ends too early, chunked",
       {.body = body, .is_chunked = true, .cut_at = 9},
       "Transferred a partial file: transfer closed with outstanding read data remaining (attempt "
       "2 of 2)",
       "Transferred a partial file: transfer closed with outstanding read data remaining; without "
       "a strong entity tag it cannot be continued (at byte 9, attempt 1 of 2)"},
      {"sends a wrong length",
       {.body = body, .length = "11", .cut_at = 10},
       "Transferred a partial file: transfer closed with 1 bytes remaining to read (attempt 2 of "
       "2)",
       "Transferred a partial file: transfer closed with 1 bytes remaining to read; without a "
       "strong entity tag it cannot be continued (at byte 10, attempt 1 of 2)"},
      {"sends a length that is none",
       {.body = body, .length = "ten"},
       "Weird server reply: Invalid Content-Length: value (attempt 1 of 2)"},
      {"sends a body that is too long",
       {.body = std::string(101, 'x')},
       "the body is longer than max_bytes, 100 (attempt 1 of 2)",
       "nothing was thrown"},
      {"sends no length and too much",
       {.body = std::string(101, 'x'), .says_length = false},
       "the body is longer than max_bytes, 100 (attempt 1 of 2)",
       "nothing was thrown"},
      {"sends a damaged byte",
       {.headers = wrong, .body = body},
       "the body has the CRC32C KAwGng==, the server states AAAAAA== (attempt 2 of 2)",
       "the body has the CRC32C KAwGng==, the server states AAAAAA== (at byte 10, attempt 1 of 2)"},
      {"sends a damaged byte, chunked",
       {.headers = wrong, .body = body, .is_chunked = true},
       "the body has the CRC32C KAwGng==, the server states AAAAAA== (attempt 2 of 2)",
       "the body has the CRC32C KAwGng==, the server states AAAAAA== (at byte 10, attempt 1 of 2)"},
      {"ends too early without a length",
       {.headers = right, .body = body, .says_length = false, .cut_at = 9},
       shorter + " (attempt 2 of 2)",
       shorter + " (at byte 9, attempt 1 of 2)"},
      {"ends too early by a length that fits",
       {.headers = right, .body = body.substr(0, 9)},
       shorter + " (attempt 2 of 2)",
       shorter + " (at byte 9, attempt 1 of 2)"},
      {"sends an unknown encoding",
       {.headers = {{"Content-Encoding", "gzip"}}, .body = "no gzip at all"},
       "Unrecognized or bad HTTP Content or Transfer-Encoding: Error while processing content "
       "unencoding: incorrect header check (attempt 1 of 2)"},
      {"404",
       {.status = 404, .body = "no such object\nmore"},
       "404 Not Found: no such object (attempt 1 of 2)"},
      {"404 with a page",
       {.status = 404, .body = "<!DOCTYPE html>\n<html>no such object</html>"},
       "404 Not Found (attempt 1 of 2)"},
      {"403 of S3",
       {.status = 403,
        .body = "<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>"},
       "403 Forbidden: AccessDenied, Access Denied (attempt 1 of 2)"},
      {"408", {.status = 408}, "408 Request Timeout (attempt 2 of 2)"},
      {"429",
       {.status = 429, .body = "slow down"},
       "429 Too Many Requests: slow down (attempt 2 of 2)"},
      {"500", {.status = 500}, "500 Internal Server Error (attempt 2 of 2)"},
      {"503 with Retry-After",
       {.status = 503, .headers = {{"Retry-After", "3600"}}, .body = "busy"},
       "503 Service Unavailable: busy (attempt 2 of 2)"},
      {"a status that nobody knows", {.status = 499}, "status 499 (attempt 1 of 2)"},
      {"304", {.status = 304}, "304 Not Modified (attempt 1 of 2)"},
      {"a redirect to itself",
       {.status = 302, .headers = {{"Location", "/a"}}},
       "more than 5 redirects, redirected to http://HOST/a (attempt 1 of 2)"},
      {"a redirect to a file",
       {.status = 302, .headers = {{"Location", "file:///etc/passwd"}}},
       "redirected to file:///etc/passwd, which is no URL of http or https (attempt 1 of 2)"},
      {"a redirect to half a URL",
       {.status = 302, .headers = {{"Location", "//u:secret@a b/?sig=secret"}}},
       "redirected to a place, which is no URL of http or https (attempt 1 of 2)"},
      {"a redirect to nowhere", {.status = 302}, "302 Found (attempt 1 of 2)"},
      {"a redirect to nobody",
       {.status = 302, .headers = {{"Location", "http://127.0.0.1:1/x?sig=secret"}}},
       "Failed to connect to 127.0.0.1 port 1 after N ms: Couldn't connect to server, redirected "
       "to http://127.0.0.1:1/x?sig=... (attempt 2 of 2)"},
  };
}

static std::string message_of(runtime& where, const web_server& server, task<> work) {
  std::string text = "nothing was thrown";
  try {
    sync_wait(where, std::move(work));
  } catch (const error& failure) {
    text = failure.what();
  }
  for (std::size_t at = 0; (at = text.find(server.host())) != std::string::npos;)
    text.replace(at, server.host().size(), "HOST");
  return std::regex_replace(text, std::regex("after [0-9]+ ms"), "after N ms");
}

static task<> get_and_drop(client web, std::string url) { (void)co_await web.get(std::move(url)); }

static task<> stream_and_drop(client web, std::string url) {
  auto chunks = web.stream(std::move(url));
  while (co_await chunks.next() != nullptr) {}
}

static std::string at_byte_0(std::string message) {
  return message.replace(message.rfind("(attempt"), 1, "(at byte 0, ");
}

TEST_P(Failures, AreReportedWithRequestAndCause) {
  runtime runtime(options());
  auto options = two_attempts();
  options.max_bytes = 100;
  options.decompress = true;
  for (auto& each : faults()) {
    web_server server([&](auto&) { return each.reply; });
    bool stalls = each.reply.is_silent || each.reply.stall_at;
    options.stall_timeout = stalls ? 100ms : 30s;
    EXPECT_EQ(message_of(runtime, server, get_and_drop(client(options), server.url("/a"))),
              "get http://HOST/a: " + each.message)
        << each.name;
    auto streamed = message_of(runtime, server, stream_and_drop(client(options), server.url("/a")));
    if (each.streamed.starts_with("nothing"))
      EXPECT_EQ(streamed, each.streamed) << each.name;
    else
      EXPECT_EQ(streamed, "stream http://HOST/a: " +
                              (each.streamed.empty() ? at_byte_0(each.message) : each.streamed))
          << each.name;
  }
}

// The bytes of a response, cut off behind each of them.
static std::vector<std::string> prefixes_of(const std::string& response) {
  std::vector<std::string> all;
  for (std::size_t bytes = 0; bytes < response.size(); ++bytes)
    all.push_back(response.substr(0, bytes));
  return all;
}

static task<std::string> text_of(client web, std::string url) {
  auto got = co_await web.get(std::move(url));
  co_return std::string(got.body().text());
}

TEST_P(Failures, AResponseThatIsCutOffAnywhereIsNoShorterBody) {
  const std::string content = "0123456789";
  const std::string chunks = "4\r\n0123\r\n6\r\n456789\r\n0\r\n\r\n";
  const std::string responses[] = {
      "HTTP/1.1 200 OK\r\nETag: \"v1\"\r\nContent-Length: 10\r\n\r\n" + content,
      "HTTP/1.1 200 OK\r\nETag: \"v1\"\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks,
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks,
      "HTTP/1.1 200 OK\r\nx-amz-checksum-crc32c: " + crc32c_text(content) + "\r\n\r\n" + content};
  runtime runtime(options());
  auto options = two_attempts();
  options.retry.attempts = 3;
  client web(options);
  for (auto& response : responses) {
    bool may_be_continued = response.find("ETag") != std::string::npos;
    for (auto& cut : prefixes_of(response)) {
      if (cut.size() + 4 > response.size() && cut.ends_with("0\r\n")) continue;  // all has come
      std::atomic<int> calls = 0;
      web_server server([&](auto& request) {
        return ++calls == 1 ? web_reply{.raw = cut} : file_reply(request, content);
      });
      EXPECT_EQ(sync_wait(runtime, text_of(web, server.url())), content) << cut;
      if (!may_be_continued) continue;
      calls = 0;
      EXPECT_EQ(sync_wait(runtime, joined(web.stream(server.url()))), content) << cut;
    }
  }
}

TEST_P(Failures, AHeadThatIsCutOffBehindSomeOfTheBodyIsNoOtherPart) {
  const std::string content = "0123456789";
  runtime runtime(options());
  auto options = two_attempts();
  options.retry.attempts = 3;
  client web(options);
  for (std::string head : {"", "ETag: \"v1\"\r\n", "Content-Length: 6\r\n"})
    for (bool is_stream : {false, true}) {
      std::atomic<int> calls = 0;
      web_server server([&](auto& request) {
        auto reply = file_reply(request, content);
        if (++calls == 1) reply.cut_at = 4;
        return calls == 2 ? web_reply{.raw = "HTTP/1.1 206 Partial\r\n" + head} : reply;
      });
      auto all = is_stream ? joined(web.stream(server.url())) : text_of(web, server.url());
      EXPECT_EQ(sync_wait(runtime, std::move(all)), content) << head << is_stream;
      EXPECT_EQ(server.seen().back().headers["range"], "bytes=4-") << head << is_stream;
    }
}

}  // namespace lade::io::http::failures_test
