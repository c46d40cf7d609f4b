#include <lade/error.hpp>
#include <lade/io/file.hpp>
#include <lade/io/http/urls.hpp>
#include <lade/lade.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "../../support/web_server.hpp"

namespace lade::io::http {

using testing::HasSubstr;
using testing::ThrowsMessage;

// The default client is made once, and keeps a handle for each request that has run beside others.
class Urls : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    test::web_server server([](auto& request) { return test::file_reply(request, "x"); });
    runtime runtime;
    (void)sync_wait(runtime, io::read_file(server.url("/")));
  }
};

TEST_F(Urls, AreReadByAPipeline) {
  test::web_server server([](auto& request) { return test::file_reply(request, request.target); });
  std::vector<sample> samples;
  for (int i = 0; i < 200; ++i) samples.emplace_back(server.url("/" + std::to_string(i)), i);
  runtime runtime;
  int count = 0;
  for (auto& got : runtime.run(from(samples) | map(io::read, {.concurrency = 1}))) {
    EXPECT_EQ(got.data().text(), "/" + std::to_string(got.label()));
    ++count;
  }
  EXPECT_EQ(count, 200);
}

TEST_F(Urls, OfAbsentObjectsAreErrorsThatNameThem) {
  test::web_server server(
      [](auto&) { return test::web_reply{.status = 404, .body = "no such key"}; });
  std::vector<sample> samples{sample(server.url("/a?token=secret"))};
  runtime runtime;
  EXPECT_THAT(
      [&] {
        for (auto& got : runtime.run(from(samples) | map(io::read, {.concurrency = 1}))) (void)got;
      },
      ThrowsMessage<error>("read: get " + server.url("/a?token=...") +
                           ": 404 Not Found: no such key (attempt 1 of 5)"));
  EXPECT_FALSE(sync_wait(runtime, io::try_open(server.url("/a"))));
}

TEST_F(Urls, MayBeReadWithOptionsOfTheirOwn) {
  test::web_server server(
      [](auto& request) { return test::file_reply(request, request.headers.at("user-agent")); });
  io::mount(server.url("/"), web_store(client({.user_agent = "trainer/2"})));
  runtime runtime;
  EXPECT_EQ(sync_wait(runtime, io::read_file(server.url("/a"))).text(), "trainer/2");
  io::unmount(server.url("/"));
}

}  // namespace lade::io::http
