// Many objects from a server at which a part of the requests fails in every way, and over a network
// that loses packets.

#include <lade/from.hpp>
#include <lade/io/file.hpp>
#include <lade/io/http/client.hpp>
#include <lade/io/http/urls.hpp>
#include <lade/io/store.hpp>
#include <lade/map.hpp>
#include <lade/random.hpp>
#include <lade/run.hpp>
#include <lade/runtime.hpp>
#include <lade/sample.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "../../support/crc32c_text.hpp"
#include "../../support/lossy_network.hpp"
#include "../../support/reactors.hpp"
#include "../../support/seed.hpp"
#include "../../support/web_server.hpp"

namespace lade::io::http::fault_run_test {

using namespace testing_support;
using namespace std::chrono_literals;
using test::web_reply;
using test::web_request;
using test::web_server;

static constexpr std::uint64_t most_bytes = 40'000;
static constexpr std::uint64_t kinds = 16;

// The content of an object, determined by its number.
static std::string content_of(std::uint64_t seed, std::uint64_t number) {
  random draw(seed, number);
  std::string content(draw.below(most_bytes), '\0');
  for (auto& each : content) each = static_cast<char>(draw());
  return content;
}

// Answers a request for an object or the rest of one; every twentieth of them wrongly in each way.
class faulty_store {
 public:
  faulty_store(std::uint64_t seed, std::size_t objects) : seed_(seed), attempts_(objects) {}

  web_reply operator()(const web_request& request) {
    auto number = std::stoull(request.target.substr(1));
    auto attempt = attempts_.at(number).fetch_add(1);
    auto content = content_of(seed_, number);
    auto reply = test::file_reply(request, content, "\"" + std::to_string(number) + "\"");
    if (reply.status == 200)
      reply.headers.emplace_back("x-amz-checksum-crc32c", test::crc32c_text(content));
    random draw(seed_, number, attempt);
    auto kind = draw.below(20);
    ++requests_;
    bool is_spoilt = kind < kinds && !(kind == led_elsewhere && request.target.ends_with("?"));
    if (is_spoilt) {
      if (kind == changed && reply.status == 206) ++rests_of_others_;
      ++failed_.at(kind);
      spoil(request, reply, kind, draw);
    }
    return reply;
  }

  std::uint64_t requests() const noexcept { return requests_; }
  std::uint64_t rests_of_others() const noexcept { return rests_of_others_; }

  // How many requests were answered wrongly, in each way.
  std::vector<std::uint64_t> failed() const { return {failed_.begin(), failed_.end()}; }

 private:
  static constexpr std::uint64_t led_elsewhere = 13;
  static constexpr std::uint64_t changed = 15;

  static void damage(web_reply& reply, random& draw) {
    if (!reply.body.empty()) reply.body[draw.below(reply.body.size())] ^= 1;
  }

  static void pretend(web_reply& reply, std::string_view name, const std::string& value) {
    for (auto& [each, content] : reply.headers)
      if (each == name) content = value;
  }

  static void spoil(const web_request& request, web_reply& reply, std::uint64_t kind,
                    random& draw) {
    auto somewhere = draw.below(reply.body.size() + 1);
    switch (kind) {
      case 0: reply.cut_at = somewhere; break;
      case 1: reply.stall_at = somewhere; break;
      case 2: reply.is_silent = true; break;
      case 3: reply.resets = true; break;
      case 4: reply = {.status = 500, .body = "no luck"}; break;
      case 5: reply = {.status = 503, .headers = {{"Retry-After", "0"}}}; break;
      case 6: reply = {.status = 429}; break;
      case 7: reply.length = std::to_string(reply.body.size() + 1 + draw.below(100)); break;
      case 8: std::this_thread::sleep_for(5ms); break;
      case 9: damage(reply, draw); break;
      case 10:
        reply.is_chunked = true;
        reply.cut_at = somewhere;
        break;
      case 11:
        reply.says_length = false;
        reply.cut_at = somewhere;
        break;
      case 12: reply.body.resize(somewhere); break;
      case led_elsewhere:
        reply = {.status = 302, .headers = {{"Location", request.target + "?"}}};
        break;
      case 14:
        reply.is_chunked = true;
        damage(reply, draw);
        break;
      default: pretend(reply, "ETag", "\"another\""); damage(reply, draw);
    }
    if (kind == 7) reply.cut_at = reply.body.size();
  }

  std::uint64_t seed_;
  std::vector<std::atomic<std::uint32_t>> attempts_;
  std::atomic<std::uint64_t> requests_ = 0;
  std::atomic<std::uint64_t> rests_of_others_ = 0;
  std::array<std::atomic<std::uint64_t>, kinds> failed_{};
};

static std::size_t open_descriptors() {
  std::filesystem::directory_iterator all("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

static std::size_t objects_wanted() {
  auto* given = std::getenv("LADE_FAULT_RUN_OBJECTS");
  return given ? std::stoul(given) : 2'000;
}

static client_options patient() {
  client_options options;
  options.retry.attempts = 300;
  options.retry.pause = 1ms;
  options.longest_pause = 5ms;
  options.stall_timeout = 500ms;
  options.connections_per_host = 256;
  return options;
}

class FaultRun : public ReactorTest {};
INSTANTIATE_TEST_SUITE_P(Both, FaultRun,
                         testing::Values(reactor_kind::io_uring, reactor_kind::fallback),
                         reactor_name);

TEST_P(FaultRun, DeliversEveryObjectOnceAndByteForByte) {
  auto seed = test::new_seed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  const auto objects = objects_wanted();
  const auto descriptors = open_descriptors();
  {
    faulty_store store(seed, objects);
    web_server server([&](auto& request) { return store(request); }, false);
    client web(patient());
    mount(server.url(), web_store(web));
    std::vector<sample> names;
    for (std::size_t i = 0; i < objects; ++i)
      names.emplace_back(server.url("/" + std::to_string(i)));
    runtime runtime(options());
    std::vector<int> given(objects);
    map_options reading{.concurrency = 256, .order = item_order::completion};
    reading.retry = {.attempts = 50, .pause = 1ms};  // objects that have changed are errors
    auto contents = from(std::move(names)) | map(io::read, reading);
    for (auto& each : runtime.run(contents)) {
      auto number = std::stoul(each.key().substr(each.key().rfind('/') + 1));
      ++given.at(number);
      ASSERT_TRUE(each.data().text() == content_of(seed, number)) << each.key();
    }
    EXPECT_THAT(given, testing::Each(1));
    // A slow machine gives up some of these answers before they have come.
    EXPECT_LE(web.stats().failures, store.rests_of_others());
    EXPECT_GT(web.stats().failures, 0u);
    EXPECT_THAT(store.failed(), testing::Each(testing::Gt(store.requests() / 40)));
    RecordProperty("requests", std::to_string(store.requests()));
    RecordProperty("rests_of_others", std::to_string(store.rests_of_others()));
    RecordProperty("failed", testing::PrintToString(store.failed()));
    EXPECT_GE(web.stats().verified, objects);
    EXPECT_EQ(runtime.memory().stats().used_bytes, 0u);
    unmount(server.url());
  }
  EXPECT_EQ(open_descriptors(), descriptors);
}

static void read_over(const runtime_options& how, std::uint64_t seed) {
  constexpr int objects = 200;
  const std::string content = [&] {
    random draw(seed, 0);
    std::string text(110'000 + objects, '\0');
    for (auto& each : text) each = static_cast<char>(draw());
    return text;
  }();
  auto content_of_object = [&](std::size_t number) { return content.substr(number, 110'000); };
  web_server server(
      [&](auto& request) {
        return test::file_reply(request, content_of_object(std::stoull(request.target.substr(1))));
      },
      false, test::lossy_network::server);
  auto root = std::string("http://") + test::lossy_network::seen_by_clients + ":" +
              std::to_string(server.port()) + "/";
  client_options often;
  often.proxy = "";
  often.no_proxy = "*";
  mount(root, web_store(client(often)));
  std::vector<sample> names;
  for (std::size_t i = 0; i < objects; ++i) names.emplace_back(root + std::to_string(i), i);
  runtime runtime(how);
  std::vector<int> given(objects);
  auto contents = from(std::move(names)) | map(io::read, {.concurrency = 64});
  for (auto& each : runtime.run(contents)) {
    auto number = static_cast<std::size_t>(each.label());
    ++given.at(number);
    ASSERT_TRUE(each.data().text() == content_of_object(number)) << each.key();
  }
  EXPECT_THAT(given, testing::Each(1));
  unmount(root);
}

// 2 % of the packets are lost, and a round trip takes 20 ms.
TEST_P(FaultRun, DeliversEveryObjectOverALossyNetwork) {
  auto seed = test::new_seed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::string why_not;
  std::thread elsewhere([&] {
    std::optional<test::lossy_network> network;
    try {
      network.emplace(50, 10ms, seed);
    } catch (const std::system_error& refused) {
      why_not = refused.what();
      return;
    }
    EXPECT_NO_THROW(read_over(options(), seed));
  });
  elsewhere.join();
  if (!why_not.empty()) GTEST_SKIP() << why_not;
}

}  // namespace lade::io::http::fault_run_test
