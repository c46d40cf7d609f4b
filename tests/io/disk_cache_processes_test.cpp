#include <lade/checksum.hpp>
#include <lade/io/disk_cache.hpp>
#include <lade/lade.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../io/cache_block.hpp"
#include "../../io/cache_directory.hpp"
#include "../support/counted_store.hpp"
#include "../support/seed.hpp"
#include "../support/temp_dir.hpp"

namespace lade::io::disk_cache_processes_test {

using testing_support::temp_dir;

static std::string text_of_object(std::uint64_t number) {
  std::mt19937_64 random(number);
  std::string text(random() % 12'000, '\0');
  for (auto& c : text) c = static_cast<char>(random());
  return text;
}

// A store whose objects are known to all processes, which adds a line to a file for each request.
class logged_store final : public store {
 public:
  explicit logged_store(const std::string& log)
      : fd_(::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600)) {}
  ~logged_store() override { close(fd_); }

  task<buffer> read(std::string url) const override {
    co_return test::buffer_of(text_of_object(number_of(url)));
  }
  task<std::shared_ptr<const byte_reader>> open(std::string, bool) const override {
    co_return nullptr;
  }
  async_generator<buffer> stream(std::string, stream_options) const override { co_return; }
  task<object_part> read_part(std::string url, std::uint64_t offset, std::size_t bytes,
                              std::string) const override {
    auto line = url + " " + std::to_string(offset) + "\n";
    (void)!write(fd_, line.data(), line.size());
    auto whole = text_of_object(number_of(url));
    auto part = whole.substr(std::min<std::size_t>(offset, whole.size()), bytes);
    co_return object_part(test::buffer_of(part), whole.size(), "v1");
  }

 private:
  static std::uint64_t number_of(const std::string& url) {
    return std::stoull(url.substr(url.rfind('/') + 1));
  }

  int fd_;
};

static constexpr std::uint64_t object_count = 40;

static std::string url_of(std::uint64_t number) { return "s3://b/" + std::to_string(number); }

static task<bool> is_right(std::shared_ptr<const disk_cache> cache, std::uint64_t number) {
  auto content = co_await cache->read(url_of(number));
  co_return content.text() == text_of_object(number);
}

static task<bool> all_are_right(std::shared_ptr<const disk_cache> cache,
                                std::vector<std::uint64_t> order) {
  std::vector<task<bool>> reads;
  for (auto number : order) reads.push_back(is_right(cache, number));
  auto results = co_await when_all(std::move(reads));
  co_return std::ranges::count(results, false) == 0;
}

// The work of a process: it reads all objects `rounds` times, each time in a random order.
static bool read_all(const std::string& directory, const std::string& log, std::uint64_t max_bytes,
                     std::uint64_t seed, int rounds) {
  runtime runtime({.threads = 2});
  auto cache = std::make_shared<const disk_cache>(
      std::make_shared<const logged_store>(log),
      disk_cache_options{.directory = directory, .max_bytes = max_bytes, .block_bytes = 4096});
  std::mt19937_64 random(seed);
  std::vector<std::uint64_t> order(object_count);
  for (std::uint64_t i = 0; i < object_count; ++i) order[i] = i;
  for (int i = 0; i < rounds; ++i) {
    std::ranges::shuffle(order, random);
    if (!sync_wait(runtime, all_are_right(cache, order))) return false;
    if (rounds > 1) cache->begin_epoch();
  }
  return true;
}

// No runtime lives in this process while it forks.
static pid_t start_process(const std::function<bool()>& work) {
  auto child = fork();
  if (child == 0) _exit(work() ? 0 : 1);
  return child;
}

static int status_of(pid_t child) {
  int status = 0;
  waitpid(child, &status, 0);
  return status;
}

static std::vector<std::string> lines_of(const std::string& path) {
  std::vector<std::string> lines;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  std::ranges::sort(lines);
  return lines;
}

TEST(DiskCacheProcesses, FetchEachBlockOnceTogether) {
  temp_dir dir;
  auto directory = dir / "cache", log = dir / "log";
  std::vector<pid_t> children;
  for (std::uint64_t i = 0; i < 4; ++i)
    children.push_back(start_process([&, i] { return read_all(directory, log, 1 << 30, i, 1); }));
  for (auto child : children) EXPECT_EQ(status_of(child), 0);
  auto lines = lines_of(log);
  EXPECT_EQ(std::ranges::adjacent_find(lines), lines.end()) << "a block was fetched twice";
  EXPECT_GE(lines.size(), object_count);
}

TEST(DiskCacheProcesses, ShareTheLimit) {
  temp_dir dir;
  auto directory = dir / "cache";
  constexpr std::uint64_t max_bytes = 60'000;
  std::vector<pid_t> children;
  for (std::uint64_t i = 0; i < 3; ++i)
    children.push_back(
        start_process([&, i] { return read_all(directory, dir / "log", max_bytes, i, 5); }));
  for (auto child : children) EXPECT_EQ(status_of(child), 0);
  std::uint64_t sum = 0;
  for (auto& each : std::filesystem::recursive_directory_iterator(directory))
    if (each.is_regular_file() && each.path().parent_path() != directory) sum += each.file_size();
  EXPECT_LE(sum, max_bytes);
  EXPECT_GT(sum, max_bytes / 2);
}

TEST(DiskCacheProcesses, MayBeKilledAtAnyTime) {
  const auto seed = test::new_seed();
  SCOPED_TRACE("LADE_SEED=" + std::to_string(seed));
  std::mt19937_64 random(seed);
  temp_dir dir;
  auto directory = dir / "cache", log = dir / "log";
  constexpr std::uint64_t max_bytes = 150'000;
  for (int i = 0; i < 60; ++i) {
    auto other = random() % 4 == 0
                     ? start_process([&] { return read_all(directory, log, max_bytes, seed, 1); })
                     : 0;
    auto child = start_process(
        [&] { return read_all(directory, log, max_bytes, seed + static_cast<unsigned>(i), 1000); });
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 30'000));
    kill(child, SIGKILL);
    EXPECT_TRUE(WIFSIGNALED(status_of(child)));
    if (other > 0) {
      EXPECT_EQ(status_of(other), 0) << "beside one that was killed";
    }
  }
  runtime runtime({.threads = 2});
  auto cache = std::make_shared<const disk_cache>(
      std::make_shared<const logged_store>(log),
      disk_cache_options{.directory = directory, .max_bytes = max_bytes, .block_bytes = 4096});
  std::vector<std::uint64_t> order(object_count);
  for (std::uint64_t i = 0; i < object_count; ++i) order[i] = i;
  EXPECT_TRUE(sync_wait(runtime, all_are_right(cache, order)));
  auto stats = cache->stats();
  EXPECT_GT(stats.hits, 0u) << "what was written before is used";
  EXPECT_EQ(stats.damaged, 0u);
  EXPECT_LE(stats.used_bytes, max_bytes);
  EXPECT_TRUE(std::filesystem::is_empty(directory + "/new"));
}

// Vectors of the reference: the key 00 01 .. 0f, the message 00 01 .. of each length.
TEST(CacheBlock, KeysAreHashedAsTheReferenceDoes) {
  EXPECT_EQ(detail::siphash128({}).high, 0xe6a825ba047f81a3u);
  EXPECT_EQ(detail::siphash128({}).low, 0x930255c71472f66du);
  std::vector<std::byte> bytes{std::byte{0}};
  EXPECT_EQ(detail::siphash128(bytes).high, 0x44af996bd8c187dau);
  EXPECT_EQ(detail::siphash128(bytes).low, 0x45fc229b11597634u);
}

TEST(CacheBlock, KeysDifferByStoreObjectSizeAndNumber) {
  constexpr detail::block_key store{1, 2}, other{1, 3};
  auto key = detail::key_of_block(store, "s3://b/a", 4096, 0);
  EXPECT_EQ(key, detail::key_of_block(store, "s3://b/a", 4096, 0));
  EXPECT_NE(key, detail::key_of_block(other, "s3://b/a", 4096, 0));
  EXPECT_NE(key, detail::key_of_block(store, "s3://b/b", 4096, 0));
  EXPECT_NE(key, detail::key_of_block(store, "s3://b/a", 8192, 0));
  EXPECT_NE(key, detail::key_of_block(store, "s3://b/a", 4096, 1));
}

TEST(CacheUse, ReleasesNoMoreThanIsReserved) {
  temp_dir dir;
  detail::cache_use use(dir / "use", true);
  EXPECT_TRUE(use.reserve(10, 100));
  EXPECT_FALSE(use.reserve(91, 100));
  use.release(30);
  EXPECT_EQ(use.used_bytes(), 0u);
  EXPECT_TRUE(use.reserve(100, 100));
}

static detail::block_label label_of(std::string_view content) {
  detail::block_label label;
  label.key = {1, 2};
  label.object_bytes = 10'000;
  label.offset = 4096;
  label.content_bytes = content.size();
  label.content_crc = crc32c(std::as_bytes(std::span(content))).value();
  label.etag = "v1";
  label.name = "s3://b/a";
  return label;
}

// The label of a file that is whole.
static std::optional<detail::block_label> verified(std::string_view file) {
  auto bytes = std::as_bytes(std::span(file));
  auto label = detail::decode_label(bytes, bytes.size());
  return label && detail::has_content_of(*label, bytes) ? label : std::nullopt;
}

TEST(CacheBlock, ALabelSaysWhatAFileIs) {
  auto file = std::string("content") + encode_label(label_of("content"));
  auto label = verified(file);
  ASSERT_TRUE(label);
  EXPECT_EQ(label->key, (detail::block_key{1, 2}));
  EXPECT_EQ(label->object_bytes, 10'000u);
  EXPECT_EQ(label->offset, 4096u);
  EXPECT_EQ(label->content_bytes, 7u);
  EXPECT_EQ(label->etag, "v1");
  EXPECT_EQ(label->name, "s3://b/a");
}

TEST(CacheBlock, LongNamesAreShortened) {
  auto label = label_of("content");
  const std::string name(10'000, 'n');
  label.name = name;
  auto file = std::string("content") + encode_label(label);
  auto found = verified(file);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->etag, "v1");
  EXPECT_EQ(file.size(), 7 + detail::most_label_bytes);
}

TEST(CacheBlock, EveryFlippedBitAndEveryCutIsNoticed) {
  auto file = std::string("content") + encode_label(label_of("content"));
  for (std::size_t bit = 0; bit < file.size() * 8; ++bit) {
    auto damaged = file;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ 1 << bit % 8);
    EXPECT_FALSE(verified(damaged)) << "bit " << bit;
  }
  for (std::size_t bytes = 0; bytes < file.size(); ++bytes) {
    EXPECT_FALSE(verified(std::string_view(file).substr(0, bytes)));
    EXPECT_FALSE(verified(std::string_view(file).substr(file.size() - bytes)));
  }
}

}  // namespace lade::io::disk_cache_processes_test
