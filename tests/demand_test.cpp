#include "support/reactors.hpp"
#include "support/temp_dir.hpp"

#include <lade/buffer_pool.hpp>
#include <lade/cut.hpp>
#include <lade/from.hpp>
#include <lade/io/file.hpp>
#include <lade/map.hpp>
#include <lade/run.hpp>
#include <lade/runtime.hpp>

#include <gtest/gtest.h>

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

namespace lade {

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
  constexpr std::size_t bytes = 6 << 20;
  temp_dir dir;
  auto files = sparse_files(dir, 24, bytes);
  for (auto order : {item_order::input, item_order::completion}) {
    for (unsigned concurrency : {1u, 2u, 4u, 16u, 64u}) {
      runtime runtime(with_memory(2 << 20));
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

}  // namespace lade
