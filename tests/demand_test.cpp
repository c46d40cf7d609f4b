#include "support/reactors.hpp"
#include "support/seed.hpp"
#include "support/temp_dir.hpp"

#include <lade/batch.hpp>
#include <lade/buffer_pool.hpp>
#include <lade/cut.hpp>
#include <lade/flat_map.hpp>
#include <lade/from.hpp>
#include <lade/io/file.hpp>
#include <lade/map.hpp>
#include <lade/merge.hpp>
#include <lade/random.hpp>
#include <lade/route.hpp>
#include <lade/run.hpp>
#include <lade/runtime.hpp>
#include <lade/shuffle.hpp>
#include <lade/sleep.hpp>
#include <lade/tee.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

namespace lade {

using namespace std::chrono_literals;
using namespace testing_support;

class MemoryBudget : public ReactorTest {
 protected:
  static runtime_options with_memory(std::size_t bytes, unsigned threads = 2) {
    auto result = options(threads);
    result.memory_bytes = bytes;
    return result;
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

// The consumer keeps what it has for longer than a call may take, while the next call waits for
// memory.
TEST_P(MemoryBudget, WaitingForItDoesNotCountToTimeLimits) {
  runtime runtime(with_memory(1000));
  auto fill = [](int) -> task<buffer> { return allocate(1000); };
  auto buffers =
      from(std::vector<int>(4)) | map(fill, {.concurrency = 2, .timeout = 5ms, .deadline = 10ms});
  auto run = runtime.run(buffers);
  std::size_t count = 0;
  while (auto kept = run.wait_next()) {
    ++count;
    std::this_thread::sleep_for(30ms);
  }
  EXPECT_EQ(count, 4u);
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
                                     .buffer = 1 + below(2)}),
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

TEST_P(MemoryBudget, RandomGraphsEndWithHardlyAnyOfIt) {
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

}  // namespace lade
