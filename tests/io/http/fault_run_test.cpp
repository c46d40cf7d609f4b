// Many objects from a server at which a part of the requests fails in every way.

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

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "../../support/reactors.hpp"
#include "../../support/seed.hpp"
#include "../../support/web_server.hpp"

namespace lade::io::http {

using namespace testing_support;
using namespace std::chrono_literals;
using test::web_reply;
using test::web_request;
using test::web_server;

static constexpr std::uint64_t most_bytes = 40'000;
static constexpr std::uint64_t kinds = 9;

// What an object is, told by its number.
static std::string content_of(std::uint64_t seed, std::uint64_t number) {
  random draw(seed, number);
  std::string content(draw.below(most_bytes), '\0');
  for (auto& each : content) each = static_cast<char>(draw());
  return content;
}

// Answers a request for an object; every twentieth of them wrongly in each way.
class faulty_store {
 public:
  faulty_store(std::uint64_t seed, std::size_t objects) : seed_(seed), attempts_(objects) {}

  web_reply operator()(const web_request& request) {
    auto number = std::stoull(request.target.substr(1));
    auto attempt = attempts_.at(number).fetch_add(1);
    auto content = content_of(seed_, number);
    auto reply = test::file_reply(request, content, "\"" + std::to_string(number) + "\"");
    random draw(seed_, number, attempt);
    auto kind = draw.below(20);
    if (kind < kinds) {
      ++failed_;
      spoil(reply, kind, draw);
    }
    return reply;
  }

  std::uint64_t failed() const noexcept { return failed_; }

 private:
  static void spoil(web_reply& reply, std::uint64_t kind, random& draw) {
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
      default: std::this_thread::sleep_for(5ms);
    }
    if (kind == 7) reply.cut_at = reply.body.size();
  }

  std::uint64_t seed_;
  std::vector<std::atomic<std::uint32_t>> attempts_;
  std::atomic<std::uint64_t> failed_ = 0;
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
  options.retry.attempts = 40;
  options.retry.pause = 1ms;
  options.longest_pause = 5ms;
  options.stall_timeout = 2s;
  options.connections_per_host = 256;
  return options;
}

class FaultRun : public ReactorTest {};
INSTANTIATE_TEST_SUITE_P(Both, FaultRun,
                         testing::Values(reactor_kind::io_uring, reactor_kind::fallback),
                         reactor_name);

TEST_P(FaultRun, GivesEveryObjectOnceAndByteForByte) {
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
    auto contents = from(std::move(names)) |
                    map(io::read, {.concurrency = 256, .order = item_order::completion});
    for (auto& each : runtime.run(contents)) {
      auto number = std::stoul(each.key().substr(each.key().rfind('/') + 1));
      ++given.at(number);
      ASSERT_TRUE(each.data().text() == content_of(seed, number)) << each.key();
    }
    EXPECT_THAT(given, testing::Each(1));
    EXPECT_EQ(web.stats().failures, 0u);
    EXPECT_GT(store.failed(), objects / 4);
    EXPECT_EQ(runtime.memory().stats().used_bytes, 0u);
    unmount(server.url());
  }
  EXPECT_EQ(open_descriptors(), descriptors);
}

}  // namespace lade::io::http
