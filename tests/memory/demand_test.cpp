#include "../support/pipelines.hpp"
#include "../support/reactors.hpp"
#include "../support/seed.hpp"
#include "../support/temp_dir.hpp"

#include <lade/async_generator.hpp>
#include <lade/batch.hpp>
#include <lade/bucket.hpp>
#include <lade/buffer_pool.hpp>
#include <lade/cache.hpp>
#include <lade/chain.hpp>
#include <lade/cut.hpp>
#include <lade/event.hpp>
#include <lade/flat_map.hpp>
#include <lade/from.hpp>
#include <lade/io/file.hpp>
#include <lade/map.hpp>
#include <lade/merge.hpp>
#include <lade/pad.hpp>
#include <lade/random.hpp>
#include <lade/route.hpp>
#include <lade/run.hpp>
#include <lade/runtime.hpp>
#include <lade/shuffle.hpp>
#include <lade/sleep.hpp>
#include <lade/tee.hpp>
#include <lade/tensor.hpp>
#include <lade/window.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include <sys/stat.h>

namespace lade::demand_test {

using namespace std::chrono_literals;
using namespace testing_support;

constexpr std::size_t bytes_of_one = 64 << 10;

static task<buffer> fill_64_kib(int i) {
  auto data = co_await allocate(bytes_of_one);
  std::memset(data.data(), i, data.size());
  co_return data;
}

class MemoryBudget : public ReactorTest {
 protected:
  static runtime_options with_memory(std::size_t bytes, unsigned threads = 2) {
    auto result = options(threads);
    result.memory_bytes = bytes;
    return result;
  }

  // The peak memory of a run in items, with a budget of one item. Passes all results to `each`.
  template <class T, class F>
  static std::size_t peak_of(const pipeline<T>& items, F each) {
    runtime runtime(with_memory(bytes_of_one));
    auto run = runtime.run(items, {.stall = {1min}});
    while (auto item = run.wait_next()) each(*item);
    return runtime.memory().stats().peak_bytes / bytes_of_one;
  }
  template <class T>
  static std::size_t peak_of(const pipeline<T>& items) {
    return peak_of(items, [](const T&) {});
  }
};
INSTANTIATE_TEST_SUITE_P(Both, MemoryBudget,
                         testing::Values(reactor_kind::io_uring, reactor_kind::fallback),
                         reactor_name);

// Files of that size, without blocks on the disk.
static std::vector<sample> sparse_files(const temp_dir& dir, std::size_t count, std::size_t bytes) {
  std::vector<sample> files;
  for (std::size_t i = 0; i < count; ++i) {
    auto path = dir.write(std::to_string(i), "");
    std::filesystem::resize_file(path, bytes);
    files.emplace_back(path);
  }
  return files;
}

TEST_P(MemoryBudget, FilesLargerThanItAreReadOneAtATimeWhateverTheConcurrency) {
  constexpr std::size_t bytes = 3 << 20;
  temp_dir dir;
  auto files = sparse_files(dir, 12, bytes);
  for (auto order : {item_order::input, item_order::completion}) {
    for (unsigned concurrency : {1u, 2u, 4u, 16u, 64u}) {
      runtime runtime(with_memory(1 << 20));
      std::size_t read = 0;
      auto contents = from(files) | map(io::read, {.concurrency = concurrency, .order = order});
      for (auto& each : runtime.run(contents)) read += each.data().size();
      EXPECT_EQ(read, files.size() * bytes);
      EXPECT_EQ(runtime.memory().stats().peak_bytes, bytes) << "at concurrency " << concurrency;
    }
  }
}

TEST_P(MemoryBudget, IsExceededByOneFileAtMostWhereSeveralFit) {
  constexpr std::size_t bytes = 1 << 20;
  temp_dir dir;
  auto files = sparse_files(dir, 100, bytes);
  for (unsigned concurrency : {1u, 4u, 64u}) {
    runtime runtime(with_memory(5 * bytes / 2));
    std::size_t read = 0;
    auto contents = from(files) | map(io::read, {.concurrency = concurrency}) | prefetch(32);
    for (auto& each : runtime.run(contents, {.ready = 16})) read += each.data().size();
    EXPECT_EQ(read, files.size() * bytes);
    EXPECT_LE(runtime.memory().stats().peak_bytes, 3 * bytes + bytes / 2) << concurrency;
  }
}

// A pipe that somebody writes to once it is read.
class written_pipe {
 public:
  written_pipe(const temp_dir& dir, std::size_t number, std::size_t bytes)
      : path_(dir / ("pipe" + std::to_string(number))) {
    if (mkfifo(path_.c_str(), 0600) != 0) throw std::runtime_error("mkfifo " + path_);
    writer_ =
        std::jthread([path = path_, bytes] { std::ofstream(path) << std::string(bytes, 'x'); });
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  std::jthread writer_;
};

TEST_P(MemoryBudget, FilesThatDoNotKnowTheirSizeCountToIt) {
  constexpr std::size_t bytes = 300'000;
  temp_dir dir;
  runtime runtime(with_memory(1 << 20));
  const written_pipe pipe(dir, 0, bytes);
  auto contents = from(std::vector{sample(pipe.path()), sample("/proc/self/status")}) |
                  map(io::read, {.concurrency = 1});
  auto run = runtime.run(contents, {.ready = 1});
  auto of_pipe = run.wait_next();
  ASSERT_TRUE(of_pipe);
  EXPECT_EQ(of_pipe->data().size(), bytes);
  EXPECT_GE(runtime.memory().stats().used_bytes, bytes);
  of_pipe.reset();
  auto status = run.wait_next();
  ASSERT_TRUE(status);
  EXPECT_GT(runtime.memory().stats().used_bytes, 0u);
  EXPECT_LT(runtime.memory().stats().used_bytes, 16u << 10) << "what is left over is kept";
}

TEST_P(MemoryBudget, OfOneByteIsEnoughForFilesThatDoNotKnowTheirSize) {
  constexpr std::size_t bytes = 200'000;  // in 256 KiB, after 128 KiB
  for (auto order : {item_order::input, item_order::completion}) {
    temp_dir dir;
    std::vector<sample> files;
    std::vector<std::unique_ptr<written_pipe>> pipes;
    for (std::size_t i = 0; i < 8; ++i) {
      pipes.push_back(std::make_unique<written_pipe>(dir, i, bytes));
      files.emplace_back(pipes.back()->path());
      for (int j = 0; j < 3; ++j) files.emplace_back("/proc/self/status");
      files.emplace_back(dir.write("empty" + std::to_string(i), ""));
    }
    runtime runtime(with_memory(1));
    std::size_t read = 0;
    auto contents = from(files) | map(io::read, {.concurrency = 16, .order = order});
    for (auto& each : runtime.run(contents)) read += each.data().size();
    EXPECT_GT(read, pipes.size() * bytes);
    EXPECT_EQ(runtime.memory().stats().peak_bytes, 384u << 10);
  }
}

// Of two calls: the second begins before the first has memory, and asks for some after it.
struct two_calls {
  event started;
  event filled;

  task<buffer> first() {
    co_await started;
    auto memory = co_await allocate(1000);
    filled.set();
    co_return memory;
  }
  task<buffer> second() {
    started.set();
    co_await filled;
    co_return co_await allocate(1000);
  }
};

// How many of two calls keep within the limits. The second waits longer for memory, because the
// consumer keeps the result of the first.
static std::size_t calls_in_time(runtime& where, std::chrono::nanoseconds timeout,
                                 std::chrono::nanoseconds deadline) {
  two_calls calls;
  auto fill = [&](int i) { return i == 0 ? calls.first() : calls.second(); };
  map_options limits{.concurrency = 2, .timeout = timeout, .deadline = deadline};
  limits.on_error = on_error::skip;
  auto run = where.run(from(std::vector{0, 1}) | map(fill, limits));
  auto kept = run.wait_next();
  if (!kept) return 0;
  test::wait_until([&] {
    auto stage = run.statistics().stages.back();
    return stage.memory_wait > deadline || stage.failed > 0;
  });
  kept.reset();
  return run.wait_next() ? 2 : 1;
}

TEST_P(MemoryBudget, WaitingForItDoesNotCountToTimeLimits) {
  runtime runtime(with_memory(1000));
  auto limit = 1ms;
  // Twice as long where the machine has held up the calls themselves.
  while (calls_in_time(runtime, limit, 2 * limit) < 2 && limit < 1s) limit *= 2;
  EXPECT_LT(limit, 1s);
}

// Whose first attempt for item 1 leaves no memory for the next, or for itself.
struct greedy_attempt {
  runtime* where;
  std::shared_ptr<buffer> held = std::make_shared<buffer>();
  std::shared_ptr<std::atomic<int>> attempts = std::make_shared<std::atomic<int>>(0);
  std::shared_ptr<std::atomic<bool>> holds = std::make_shared<std::atomic<bool>>(false);

  bool is_first(int item) const {
    if (item != 1 || (*attempts)++ > 0) return false;
    *held = where->memory().allocate_now(1000);
    *holds = true;  // from now on, the test may free it
    return true;
  }
};

struct waits_before_an_attempt : greedy_attempt {
  std::size_t memory_needed(int) const { return 600; }
  int operator()(int item) const {
    if (is_first(item)) throw std::runtime_error("not yet");
    return item;
  }
};

struct waits_in_an_attempt : greedy_attempt {
  task<int> operator()(int item) const {
    if (!is_first(item)) co_return item;
    co_await allocate(600);
    throw std::runtime_error("not yet");
  }
};

// Whether item 1 is tried again, although it waits for memory for longer than its deadline.
template <class Function>
static bool is_tried_again(runtime& where, std::chrono::nanoseconds deadline) {
  Function function{{&where}};
  map_options options{.concurrency = 2, .retry = {.attempts = 2, .pause = {}}};
  options.on_error = on_error::skip;
  options.deadline = deadline;
  auto run = where.run(from(std::vector{0, 1}) | map(function, options));
  run.wait_next();
  test::wait_until([&] {
    auto stage = run.statistics().stages.back();
    return *function.holds && (stage.memory_wait > deadline || stage.failed > 0);
  });
  *function.held = {};
  return run.wait_next().has_value();
}

TEST_P(MemoryBudget, WaitingForItDoesNotCountToTheDeadlineOfAnItemThatIsTriedAgain) {
  runtime runtime(with_memory(1000));
  for (auto tried :
       {is_tried_again<waits_before_an_attempt>, is_tried_again<waits_in_an_attempt>}) {
    auto deadline = 2ms;
    while (!tried(runtime, deadline) && deadline < 1s) deadline *= 2;
    EXPECT_LT(deadline, 1s);
  }
}

static task<tensor> make_sequence(int i) {
  tensor_spec spec{element_type::i32, {1 + i % 5}};
  auto data = co_await allocate(spec.bytes());
  std::memset(data.data(), 0, data.size());
  co_return tensor(spec, data);
}

TEST_P(MemoryBudget, OfOneByteIsEnoughForStagesThatHoldItems) {
  runtime runtime(with_memory(1));
  auto count = [&](const auto& items) {
    std::size_t delivered = 0;
    auto run = runtime.run(items, {.epoch = 0, .stall = {1min}});
    while (run.wait_next()) ++delivered;
    return delivered;
  };
  for (auto order : {item_order::input, item_order::completion}) {
    auto sequences = from(test::up_to(24)) | map(make_sequence, {.concurrency = 4, .order = order});
    auto length = [](const tensor& each) { return each.shape()[0]; };
    auto cached = sequences | cache();
    EXPECT_EQ(count(cached), 24u);
    EXPECT_EQ(count(cached), 24u) << "from what it keeps";
    EXPECT_EQ(count(sequences | cache({.items = 10})), 24u);
    EXPECT_EQ(count(sequences | window(5)), 20u);
    EXPECT_EQ(count(sequences | window(4, {.step = 2})), 11u);
    EXPECT_EQ(count(sequences | bucket(length, {.boundaries = {3}, .size = 4}) | unbatch()), 24u);
    EXPECT_EQ(count(sequences | batch(4) | pad()), 6u);
    EXPECT_EQ(count(sequences | batch(4) | pad({.concurrency = 2})), 6u);
    EXPECT_EQ(count(sequences | batch(4) | pack()), 6u);
    EXPECT_GT(count(sequences | pack_rows({.length = 8, .open_rows = 3})), 0u);
  }
}

TEST_P(MemoryBudget, IsExceededByOneItemOrOnePerInputOfConcurrentStages) {
  auto filled = from(test::up_to(200)) | map(fill_64_kib, {.concurrency = 64});
  auto same = map([](buffer data) { return data; }, {.concurrency = 4});
  auto alone = flat_map([](buffer data) { return std::vector<buffer>{data}; }, {.concurrency = 16});
  auto peak_of_all = [](const auto& items) {
    std::size_t delivered = 0;
    auto peak = peak_of(items, [&](const auto&) { ++delivered; });
    EXPECT_GE(delivered, 200u);
    return peak;
  };
  EXPECT_LE(peak_of_all(filled | tee(same, same)), 2u);
  EXPECT_LE(peak_of_all(filled | alone), 2u);
  std::vector<pipeline<buffer>> inputs(4, filled);
  EXPECT_LE(peak_of_all(merge(inputs, {.order = merge_order::arrival})), 5u);
}

TEST_P(MemoryBudget, IsExceededByOneItemAndWhatCollectingStagesHold) {
  auto filled = from(test::up_to(100)) | map(fill_64_kib, {.concurrency = 64});
  constexpr std::size_t holds = 10;
  auto cached = filled | cache({.items = holds});
  auto windows = filled | window(holds, {.step = 3});
  for (auto peak : {peak_of(filled | batch(holds)), peak_of(windows), peak_of(cached)}) {
    EXPECT_GE(peak, holds);
    EXPECT_LE(peak, 1 + 1 + holds);
  }
}

static task<buffer> pass(event& opened, buffer data) {
  co_await opened;
  co_return data;
}

// Path 0 continues when path 1 has yielded some items.
TEST_P(MemoryBudget, IsExceededByTheBuffersOfARouteWithASlowPath) {
  constexpr std::size_t buffered = 6;
  event opened;
  auto parity = [](const buffer& data) { return static_cast<int>(data.data()[0]) % 2; };
  auto slow = [&](buffer data) { return pass(opened, std::move(data)); };
  auto filled = from(test::up_to(100)) | map(fill_64_kib, {.concurrency = 64});
  auto routed = filled | route(parity, {.buffer = buffered},
                               map(slow, {.concurrency = 1, .buffer = 1}), chain());
  std::size_t fast = 0;
  auto peak = peak_of(routed, [&](const buffer& data) {
    if (parity(data) == 1 && ++fast == buffered) opened.set();
  });
  EXPECT_GE(peak, buffered);
  constexpr std::size_t in_paths = 1 + 1 + 1;        // of the map and of the chain
  EXPECT_LE(peak, 1 + 2 + 2 * buffered + in_paths);  // arrival: one more for each path
}

// Needs the memory of four parts at once. Some items wait meanwhile.
static async_generator<buffer> four_together(int i) {
  std::vector<buffer> parts;
  for (int part = 0; part < 4; ++part) {
    parts.push_back(co_await allocate(bytes_of_one));
    if ((i + part) % 3 == 0) co_await sleep(std::chrono::microseconds(1));
  }
  for (auto& each : parts) co_yield std::move(each);
}

TEST_P(MemoryBudget, IsExceededByOneItemOfAConcurrentFlatMapInEitherOrder) {
  auto filled = from(test::up_to(200)) | map(fill_64_kib, {.concurrency = 64});
  auto same = [](buffer data) { return std::vector<buffer>{std::move(data)}; };
  for (auto order : {item_order::input, item_order::completion})
    for (auto concurrency : {4u, 64u, automatic}) {
      auto parts =
          flat_map(four_together, {.concurrency = concurrency, .buffer = 1, .order = order});
      EXPECT_LE(peak_of(from(test::up_to(200)) | parts), 4u + 1u) << concurrency;
      auto alone = flat_map(same, {.concurrency = concurrency, .order = order});
      EXPECT_LE(peak_of(filled | alone), 2u) << concurrency;
    }
}

// A pipeline of random stages that allocate, and how many samples come out of it.
struct graph {
  pipeline<sample> items;
  std::size_t count;
};

class random_graph {
 public:
  explicit random_graph(std::uint64_t seed) : draw_(seed) {}

  graph make(unsigned depth) {
    auto count = 1 + below(12);
    graph made{from(samples(count)), count};
    for (auto stages = 1 + below(4); stages > 0; --stages) made = extend(std::move(made), depth);
    return made;
  }

 private:
  using task_function = std::function<task<sample>(sample)>;
  using plain_function = std::function<sample(sample)>;
  using join_function = std::function<sample(const std::tuple<sample, sample>&)>;
  using both = std::tuple<sample, sample>;

  std::size_t below(std::size_t n) { return static_cast<std::size_t>(draw_.below(n)); }

  static std::vector<sample> samples(std::size_t count) {
    std::vector<sample> items;
    for (std::size_t i = 0; i < count; ++i) items.emplace_back(std::to_string(i));
    return items;
  }

  static task<sample> wait_and_fill(sample in, std::size_t bytes) {
    auto data = co_await allocate(bytes);
    co_return std::move(in).with_data(std::move(data));
  }
  static task<sample> fill_twice(sample in, std::size_t bytes) {
    auto scratch = co_await allocate(bytes);
    auto data = co_await allocate(bytes);
    co_await sleep(std::chrono::microseconds(1));
    co_return std::move(in).with_data(std::move(data));
  }

  class telling {
   public:
    explicit telling(std::size_t bytes) : bytes_(bytes) {}
    std::size_t memory_needed(const sample&) const { return 2 * bytes_; }
    sample operator()(sample in) const {
      memory_charge scratch(bytes_);
      return std::move(in).with_data(allocate_now(bytes_));
    }

   private:
    std::size_t bytes_;
  };

  map_options options() {
    return {.concurrency = 1 + static_cast<unsigned>(below(5)),
            .buffer = static_cast<unsigned>(below(4)),
            .order = below(2) ? item_order::input : item_order::completion};
  }

  task_function waiting() {
    auto bytes = 1 + below(5000);
    if (below(3) == 0) return [bytes](sample in) { return fill_twice(std::move(in), bytes); };
    return [bytes](sample in) { return wait_and_fill(std::move(in), bytes); };
  }
  static sample join(const both& pair) {
    return sample(std::get<0>(pair).key()).with_data(std::get<1>(pair).data());
  }

  graph extend(graph in, unsigned depth) {
    switch (below(depth ? 12 : 8)) {
      case 0:
      case 1: return {in.items | map(waiting(), options()), in.count};
      case 2: return {in.items | map(telling(1 + below(5000)), options()), in.count};
      case 3: {
        plain_function at_once = [bytes = below(5000)](sample item) {
          return std::move(item).with_data(allocate_now(bytes));
        };
        auto in_place = map_options{.concurrency = 1};
        return {in.items | map(at_once, below(2) ? in_place : options()), in.count};
      }
      case 4: return {in.items | prefetch(1 + below(4)), in.count};
      case 5: return {in.items | batch(1 + below(5)) | unbatch(), in.count};
      case 6: return {in.items | shuffle({.window = 1 + below(4)}), in.count};
      case 7: {
        auto twice = [](sample item) { return std::vector<sample>{item, item}; };
        return {in.items | flat_map(std::function<std::vector<sample>(sample)>(twice),
                                    {.concurrency = 1 + static_cast<unsigned>(below(3)),
                                     .buffer = 1 + below(2),
                                     .order = options().order}),
                2 * in.count};
      }
      case 8: {
        auto other = make(depth - 1);
        auto order = below(2) ? merge_order::turns : merge_order::arrival;
        return {merge(std::vector{in.items, other.items}, {.order = order}),
                in.count + other.count};
      }
      case 9: {
        auto other = make(depth - 1);
        return {zip(in.items, other.items) | map(join_function(join), {.concurrency = 1}),
                std::min(in.count, other.count)};
      }
      case 10: {
        auto rows = in.items | tee({.buffer = 1 + below(3)}, map(waiting(), options()),
                                   map(waiting(), options()));
        return {rows | map(join_function(join), {.concurrency = 1}), in.count};
      }
      default: {
        std::function<int(const sample&)> choose = [](const sample& item) {
          return static_cast<int>(item.key().size() % 2);
        };
        return {in.items | route(choose, {.buffer = 1 + below(3)}, map(waiting(), options()),
                                 map(waiting(), options())),
                in.count};
      }
    }
  }

  random draw_;
};

TEST_P(MemoryBudget, RandomGraphsFinishWithAMinimalBudget) {
  auto seed = test::new_seed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  random draw(seed);
  for (int round = 0; round < 150; ++round) {
    random_graph graphs(draw());
    auto made = graphs.make(2);
    std::size_t budget = round % 3 ? 1 : 1 + draw.below(20000);
    runtime runtime(with_memory(budget, 1 + static_cast<unsigned>(draw.below(3))));
    std::size_t count = 0;
    for (auto& item : runtime.run(made.items, {.ready = 1 + draw.below(3), .stall = {1min}})) {
      count += item.key().empty() ? 0 : 1;
    }
    ASSERT_EQ(count, made.count) << "in round " << round;
    EXPECT_EQ(runtime.memory().stats().used_bytes, 0u);
  }
}

}  // namespace lade::demand_test
