#include <lade/async_generator.hpp>
#include <lade/batch.hpp>
#include <lade/batch_by.hpp>
#include <lade/bucket.hpp>
#include <lade/buffer_pool.hpp>
#include <lade/cache.hpp>
#include <lade/channel.hpp>
#include <lade/cut.hpp>
#include <lade/failure.hpp>
#include <lade/filter.hpp>
#include <lade/flat_map.hpp>
#include <lade/from.hpp>
#include <lade/map.hpp>
#include <lade/merge.hpp>
#include <lade/metrics_server.hpp>
#include <lade/pad.hpp>
#include <lade/profile.hpp>
#include <lade/route.hpp>
#include <lade/route_batches.hpp>
#include <lade/run.hpp>
#include <lade/shuffle.hpp>
#include <lade/stack.hpp>
#include <lade/support/later.hpp>
#include <lade/support/require.hpp>
#include <lade/task.hpp>
#include <lade/tee.hpp>
#include <lade/thread_pool.hpp>
#include <lade/through.hpp>
#include <lade/window.hpp>

#include "../support/pipelines.hpp"
#include "../support/resume.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <vector>

namespace lade::require_test {

using namespace test;
using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::StartsWith;
using testing::ThrowsMessage;

constexpr auto minus_two = static_cast<unsigned>(-2);
constexpr auto minus_two_bytes = static_cast<std::size_t>(-2);
constexpr auto half_of_all = 1u << 31;
constexpr auto nan = std::numeric_limits<double>::quiet_NaN();

static auto refused(const char* text) { return ThrowsMessage<error>(HasSubstr(text)); }

static int same(int i) { return i; }
static bool is_odd(int i) { return i % 2 == 1; }
struct fetch_far_too_many {
  static constexpr unsigned default_concurrency = half_of_all;
  int operator()(int i) const { return i; }
};
static std::vector<int> twice(int i) { return {i, i}; }
static async_generator<int> pass_on(async_generator<int> in) { return in; }

class blank_writer {
 public:
  explicit blank_writer(std::int64_t size) : size_(size) {}
  tensor_spec spec() const { return {element_type::u8, {size_}}; }
  void operator()(const sample&, const tensor&) const {}

 private:
  std::int64_t size_;
};

class no_batches {
 public:
  std::optional<int> add(int) { return std::nullopt; }
  std::optional<int> flush() { return std::nullopt; }
};

TEST(Require, NamesStageOptionValueAndBounds) {
  EXPECT_THAT(
      [] { map(same, {.concurrency = minus_two, .name = "decode"}); },
      ThrowsMessage<error>("decode: concurrency is 4294967294; it must be from 0 to 1048576"));
  EXPECT_THAT([] { map(same, {.timeout = -1ns}); },
              ThrowsMessage<error>("map: timeout is -1 ns; it must be at least 0 ns"));
  EXPECT_THAT([] { map(same, {.error_budget = {.rate = nan}}); },
              ThrowsMessage<error>("map: error_budget.rate is nan; it must be from 0 to 1"));
}

TEST(Require, TheCodeIsInvalidArgument) {
  try {
    batch(0);
    FAIL();
  } catch (const error& refusal) {
    EXPECT_EQ(refusal.code(), errc::invalid_argument);
  }
}

TEST(Require, OptionsOfMap) {
  EXPECT_THAT([] { map(same, {.concurrency = half_of_all}); }, refused("map: concurrency is "));
  EXPECT_THAT([] { map(same, {.buffer = ~0u - 1}); }, refused("map: buffer is 4294967294"));
  EXPECT_THAT([] { map(same, {.retry = {.attempts = minus_two}}); }, refused("retry.attempts"));
  EXPECT_THAT([] { map(same, {.retry = {.pause = -1s}}); }, refused("retry.pause"));
  EXPECT_THAT([] { map(same, {.retry = {.growth = nan}}); }, refused("retry.growth is nan"));
  EXPECT_THAT([] { map(same, {.retry = {.growth = HUGE_VAL}}); }, refused("retry.growth is inf"));
  EXPECT_THAT([] { map(same, {.retry = {.jitter = 1.5}}); }, refused("retry.jitter is 1.5"));
  EXPECT_THAT([] { map(same, {.deadline = -1ns}); }, refused("map: deadline is -1 ns"));
  EXPECT_THAT([] { map(fetch_far_too_many()); }, refused("concurrency is 2147483648"));
  EXPECT_NO_THROW(map(same, {.concurrency = automatic}));
  EXPECT_NO_THROW(map(same, {.concurrency = 1 << 20, .buffer = 1 << 20}));
}

TEST(Require, OptionsOfFilterAndFlatMap) {
  EXPECT_THAT([] { filter(is_odd, {.concurrency = half_of_all}); }, refused("filter: concurrency"));
  EXPECT_THAT([] { filter(is_odd, {.timeout = -1ns}); }, refused("filter: timeout"));
  EXPECT_THAT([] { flat_map(twice, {.concurrency = minus_two}); }, refused("concurrency"));
  EXPECT_THAT([] { flat_map(twice, {.buffer = minus_two_bytes}); }, refused("flat_map: buffer"));
  EXPECT_THAT([] { flat_map(twice, {.error_budget = {.rate = -1}}); }, refused("rate is -1"));
}

TEST(Require, OptionsOfBatches) {
  EXPECT_THAT([] { batch(0); }, refused("batch: size is 0; it must be from 1 to 1073741824"));
  EXPECT_THAT([] { batch(std::size_t{1} << 62); }, refused("batch: size is 4611686018427387904"));
  EXPECT_THAT([] { batch_into(blank_writer(1), {.size = 0}); }, refused("size is 0"));
  EXPECT_THAT([] { batch_into(blank_writer(1), {.concurrency = minus_two}); }, refused("concurr"));
  EXPECT_THAT([] { batch_into(blank_writer(1), {.buffer = minus_two_bytes}); }, refused("buffer"));
  EXPECT_THAT([] { batch_into(blank_writer(1), {.deadline = -1ns}); }, refused("deadline"));
  EXPECT_THAT([] { batch_by(no_batches(), {.error_budget = {.rate = nan}}); }, refused("rate"));
}

TEST(Require, AWriterOfEmptyTensorsIsRefused) {
  EXPECT_THAT([] { batch_into(blank_writer(0), {.size = 2, .name = "decode"}); },
              ThrowsMessage<error>(
                  StartsWith("decode: samples become tensors [0], which have no elements")));
}

TEST(Require, OptionsOfWindowsAndBuckets) {
  EXPECT_THAT([] { window(0); }, refused("window: size is 0"));
  EXPECT_THAT([] { window(minus_two_bytes); }, refused("window: size is 18446744073709551614"));
  EXPECT_THAT([] { window(1, {.step = 0}); }, refused("window: step is 0"));
  EXPECT_THAT([] { window(1, {.step = minus_two_bytes}); }, refused("window: step is 1844674"));
  EXPECT_THAT([] { bucket(same, {.size = 0}); }, refused("bucket: size is 0"));
  EXPECT_THAT([] { bucket(same, {.size = minus_two_bytes}); }, refused("bucket: size is 1844"));
  EXPECT_THAT([] { bucket(same, {.padded = 0}); }, refused("bucket: padded is 0"));
}

TEST(Require, OptionsOfPaddingAndPacking) {
  EXPECT_THAT([] { pad({.length = minus_two_bytes}); }, refused("pad: length is 18446744073"));
  EXPECT_THAT([] { pad({.multiple_of = 0}); }, refused("pad: multiple_of is 0"));
  EXPECT_THAT([] { pad({.multiple_of = minus_two_bytes}); }, refused("pad: multiple_of is 18"));
  EXPECT_THAT([] { pad({.concurrency = 0}); }, refused("pad: concurrency is 0"));
  EXPECT_THAT([] { pack({.concurrency = half_of_all}); }, refused("pack: concurrency is 21474"));
  EXPECT_THAT([] { pack_rows({}); }, refused("pack_rows: length is 0"));
  EXPECT_THAT([] { pack_rows({.length = minus_two_bytes}); }, refused("pack_rows: length is 18"));
  EXPECT_THAT([] { pack_rows({.length = 1, .open_rows = 0}); }, refused("open_rows is 0"));
}

TEST(Require, OptionsOfPathsAndBuffers) {
  EXPECT_THAT([] { route(same, {.buffer = minus_two_bytes}, map(same)); }, refused("buffer"));
  EXPECT_THAT([] { tee({.buffer = minus_two_bytes}, map(same)); }, refused("tee: buffer"));
  EXPECT_THAT([] { shuffle({.window = 0}); }, refused("shuffle: window is 0"));
  EXPECT_THAT([] { shuffle({.window = minus_two_bytes}); }, refused("shuffle: window is 1844"));
  EXPECT_THAT([] { prefetch(0); }, refused("prefetch: count is 0"));
  EXPECT_THAT([] { prefetch(std::size_t{1} << 63); }, refused("prefetch: count is 92233720368"));
  EXPECT_THAT([] { channel<int> queue(minus_two_bytes); }, refused("make a channel: capacity"));
}

TEST(Require, OptionsOfARun) {
  runtime runtime({.threads = 1});
  auto run_with = [&](const run_options& options) {
    return [&runtime, options] { (void)runtime.run(from(up_to(3)), options); };
  };
  EXPECT_THAT(run_with({.ready = 0}), refused("run: ready is 0"));
  EXPECT_THAT(run_with({.ready = minus_two_bytes}), refused("run: ready is 1844674407370955"));
  EXPECT_THAT(run_with({.retry = {.attempts = minus_two}}), refused("run: retry.attempts is 42"));
  EXPECT_THAT(run_with({.error_budget = {.rate = nan}}), refused("run: error_budget.rate is nan"));
  EXPECT_THAT(run_with({.tune = {.most = 0}}), refused("run: tune.most is 0"));
  EXPECT_THAT(run_with({.tune = {.cpus = minus_two}}), refused("run: tune.cpus is 4294967294"));
  EXPECT_THAT(run_with({.stall = {.after = -1s}}), refused("run: stall.after is -1000000000 ns"));
  auto ignore = [](const run_report&) {};
  EXPECT_THAT(run_with({.report = {.every = 0s, .to = ignore}}), refused("report.every is 0 ns"));
}

TEST(Require, RatesAreFromZeroToOne) {
  runtime runtime({.threads = 1});
  const auto use = [&](double rate) {
    const error_budget budget{.rate = rate};
    constexpr auto skip = on_error::skip;
    return std::vector<std::function<void()>>{
        [=] { map(same, {.on_error = skip, .error_budget = budget}); },
        [=] { filter(is_odd, {.on_error = skip, .error_budget = budget}); },
        [=] { flat_map(twice, {.on_error = skip, .error_budget = budget}); },
        [=] { batch_into(blank_writer(1), {.on_error = skip, .error_budget = budget}); },
        [=] { batch_by(no_batches(), {.on_error = skip, .error_budget = budget}); },
        [=] { route(same, {.on_error = skip, .error_budget = budget}, map(same)); },
        [=] { route_batches(same, {.on_error = skip, .error_budget = budget}, map(same)); },
        [=] { bucket(same, {.size = 1, .on_error = skip, .error_budget = budget}); },
        [=] { pad({.on_error = skip, .error_budget = budget}); },
        [=] { pack({.on_error = skip, .error_budget = budget}); },
        [=] { pack_rows({.length = 1, .on_error = skip, .error_budget = budget}); },
        [=] { stack({.fields = "x", .on_error = skip, .error_budget = budget}); },
        [=] { through(pass_on, {.on_error = skip, .error_budget = budget}); },
        [=] { combine(pass_on, {.on_error = skip, .error_budget = budget}, from(up_to(3))); },
        [&runtime, budget] {
          (void)runtime.run(from(up_to(3)), {.on_error = skip, .error_budget = budget});
        }};
  };
  const auto more = std::nextafter(1.0, 2.0);
  for (double wrong : {1.5, more, -1.0, -1e-300, HUGE_VAL, -HUGE_VAL, nan}) {
    const auto text =
        "error_budget.rate is " + support::number_text(wrong) + "; it must be from 0 to 1";
    for (auto& each : use(wrong)) EXPECT_THAT(each, refused(text.c_str()));
    EXPECT_THAT([&] { map(same, {.retry = {.jitter = wrong}}); }, refused("retry.jitter is "));
  }
  for (double right : {0.0, 0.5, 1.0}) {
    for (auto& each : use(right)) EXPECT_NO_THROW(each());
    EXPECT_NO_THROW(map(same, {.retry = {.jitter = right}}));
  }
}

TEST(Require, OptionsOfRuntimesPoolsAndServers) {
  EXPECT_THAT([] { runtime made({.threads = minus_two}); }, refused("runtime: threads is 429496"));
  EXPECT_THAT([] { runtime made({.reactors = minus_two}); }, refused("reactors is 4294967294"));
  EXPECT_THAT([] { thread_pool pool({.threads = half_of_all}); }, refused("pool: threads is 2147"));
  std::array<unsigned, 1> cpus{1024};
  EXPECT_THAT([&] { thread_pool pool({.cpus = cpus}); }, refused("cpus is 1024"));
  EXPECT_THAT([] { metrics_server server({.timeout = 0ms}); }, refused("timeout in seconds is 0"));
  EXPECT_THAT([] { metrics_server server({.timeout = std::chrono::milliseconds::max()}); },
              refused("timeout in seconds is 9223372036854776"));
  EXPECT_THAT([] { metrics_server server({.connections = 0}); }, refused("connections is 0"));
}

TEST(RetryPause, IsANumberWhateverTheOptionsAre) {
  retry grows{.pause = 0ns, .growth = 1e6};
  EXPECT_EQ(pause_after(grows, 1000, 0.5), 0ns);
  grows.pause = std::chrono::nanoseconds::max();
  EXPECT_EQ(pause_after(grows, 1000, 0), 24h);
}

TEST(Later, SaturatesAtTheLastTimePoint) {
  using time_point = std::chrono::steady_clock::time_point;
  auto now = std::chrono::steady_clock::now();
  EXPECT_EQ(support::later(now, 5s), now + 5s);
  EXPECT_EQ(support::later(now, -5s), now - 5s);
  EXPECT_EQ(support::later(now, std::chrono::nanoseconds::max()), time_point::max());
  EXPECT_EQ(support::later(now, std::chrono::nanoseconds::min()),
            now + std::chrono::nanoseconds::min());
  EXPECT_EQ(support::later(time_point(-5ns), std::chrono::nanoseconds::min()), time_point::min());
  EXPECT_EQ(support::later(time_point::max(), 1ns), time_point::max());
}

// Limits that are none: what they bound ends by itself.
TEST(Forever, NeverExpires) {
  constexpr auto forever = std::chrono::nanoseconds::max();
  runtime runtime({.threads = 1});
  auto wait = [](int i) -> task<int> {
    co_await sleep(1ms);
    co_return i;
  };
  auto limited = from(up_to(3)) | map(wait, {.timeout = forever, .deadline = forever}) |
                 map(same, {.concurrency = 2, .timeout = forever, .deadline = forever});
  int reports = 0;
  auto count = [&](const run_report&) { ++reports; };
  auto items = runtime.run(
      limited, {.report = {.every = forever, .to = count}, .stall = {.after = forever}});
  for (int i = 0; i < 3; ++i) EXPECT_EQ(items.wait_next(forever), i);
  EXPECT_EQ(items.wait_next(forever), std::nullopt);
  EXPECT_EQ(reports, 1);  // at the end
}

TEST(Forever, ASleepEndsWhenItIsAskedToStop) {
  runtime runtime({.threads = 1});
  EXPECT_THAT(
      [&] {
        sync_wait(runtime, with_timeout(1ms, sleep(std::chrono::nanoseconds::max()), "sleep long"));
      },
      ThrowsMessage<error>("sleep long: timed out"));
}

TEST(Require, AcceptsAnyValueWhereAllAreValid) {
  constexpr std::uint64_t most = ~std::uint64_t{0};
  for (std::uint64_t any : {std::uint64_t{0}, std::uint64_t{1}, most / 2 + 1, most - 1, most}) {
    SCOPED_TRACE(any);
    runtime runtime({.threads = 1, .memory_bytes = static_cast<std::size_t>(any)});
    auto allocated = [](int i) -> task<int> {
      co_await allocate(100);
      co_return i;
    };
    map_options how{.error_budget = {.count = any, .probation = any}};
    auto cached = from(up_to(3)) | map(allocated, how) | cache({.items = any, .bytes = any});
    for (int epoch = 0; epoch < 2; ++epoch) EXPECT_EQ(collect(runtime, cached), up_to(3));
    auto streamed = from(numbers{3});
    auto few = static_cast<int>(std::min<std::uint64_t>(any, 3));
    EXPECT_EQ(collect(runtime, streamed | take(any)), up_to(few));
    EXPECT_EQ(collect(runtime, from(up_to(3)) | take(any)), up_to(few));
    EXPECT_EQ(collect(runtime, streamed | skip(any)).size(), static_cast<std::size_t>(3 - few));
    EXPECT_EQ(collect(runtime, from(up_to(3)) | skip(any)).size(),
              static_cast<std::size_t>(3 - few));
    auto repeated = runtime.run(from(up_to(3)) | repeat(any));
    EXPECT_EQ(take_some(repeated, 7).size(), any < 3 ? any * 3 : 7);
  }
}

}  // namespace lade::require_test
