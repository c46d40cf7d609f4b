#include <lade/error.hpp>
#include <lade/io/disk_cache.hpp>
#include <lade/io/file.hpp>
#include <lade/io/memory_cache.hpp>
#include <lade/lade.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../io/cache_block.hpp"
#include "../../io/cache_use.hpp"
#include "../support/coroutines.hpp"
#include "../support/counted_store.hpp"
#include "../support/reactors.hpp"
#include "../support/seed.hpp"
#include "../support/temp_dir.hpp"

namespace lade::io::disk_cache_test {

using test::counted_store;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::ThrowsMessage;
using testing::UnorderedElementsAre;
using testing_support::code_of;
using testing_support::temp_dir;

class DiskCache : public testing_support::ReactorTest {
 protected:
  disk_cache_options options_of(std::uint64_t max_bytes = 1 << 20, std::size_t block = 4096) {
    return {.directory = directory, .max_bytes = max_bytes, .block_bytes = block};
  }
  std::string read(const disk_cache& cache, std::string url) {
    return std::string(sync_wait(where, cache.read(std::move(url))).text());
  }

  temp_dir parent;
  std::string directory = parent / "cache";
  std::shared_ptr<counted_store> remote = std::make_shared<counted_store>();
  runtime where{options()};
};

INSTANTIATE_TEST_SUITE_P(Reactors, DiskCache,
                         testing::Values(reactor_kind::io_uring, reactor_kind::fallback),
                         testing_support::reactor_name);

static std::string random_text(std::size_t bytes, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::string text(bytes, '\0');
  for (auto& c : text) c = static_cast<char>(random());
  return text;
}

// The files of blocks.
static std::vector<std::string> blocks_in(const std::string& directory) {
  std::vector<std::string> paths;
  for (auto& each : std::filesystem::recursive_directory_iterator(directory))
    if (each.is_regular_file() && each.path().parent_path() != directory)
      paths.push_back(each.path().string());
  std::ranges::sort(paths);
  return paths;
}

TEST_P(DiskCache, FetchesAnObjectOnce) {
  remote->put("s3://b/a", "content");
  remote->put("s3://b/empty", "");
  disk_cache cache(remote, options_of());
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(read(cache, "s3://b/a"), "content");
    EXPECT_EQ(read(cache, "s3://b/empty"), "");
  }
  EXPECT_THAT(remote->requests(), ElementsAre("s3://b/a 0+7", "s3://b/empty 0+0"));
  auto stats = cache.stats();
  EXPECT_EQ(stats.hits, 4u);
  EXPECT_EQ(stats.hit_bytes, 14u);
  EXPECT_EQ(stats.misses, 2u);
  EXPECT_EQ(stats.fetched_bytes, 7u);
  EXPECT_THAT(to_string(stats), HasSubstr("4 hits (0.0 MB), 2 misses"));
}

TEST_P(DiskCache, BehindTheEndOfAnObjectIsAnEmptyPart) {
  remote->put("s3://b/a", "content");
  remote->put("s3://b/long", std::string(100'000, 'x'));
  remote->put("s3://b/untagged", std::string(100'000, 'x'), "");  // which is not cached
  disk_cache cache(remote, options_of());
  for (int round = 0; round < 2; ++round)
    for (std::string url : {"s3://b/a", "s3://b/long", "s3://b/untagged"})
      for (std::uint64_t offset : {std::uint64_t{100'000}, std::uint64_t{1} << 40}) {
        auto part = sync_wait(where, cache.read_part(url, offset, 5, ""));
        EXPECT_EQ(part.content().size(), 0u);
        EXPECT_EQ(part.object_bytes(), url == "s3://b/a" ? 7u : 100'000u);
        EXPECT_EQ(part.etag(), url == "s3://b/untagged" ? "" : "v1");
      }
}

TEST_P(DiskCache, KeepsObjectsForLaterProcesses) {
  remote->put("s3://b/a", "content");
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(read(disk_cache(remote, options_of()), "s3://b/a"), "content");
  EXPECT_EQ(remote->count(), 1u);
}

TEST_P(DiskCache, BelongsToItsUserAlone) {
  remote->put("s3://b/a", "content");
  disk_cache cache(remote, options_of());
  (void)read(cache, "s3://b/a");
  auto mode_of = [](const std::string& path) {
    struct ::stat found;
    return ::stat(path.c_str(), &found) == 0 ? found.st_mode & 07777 : 0u;
  };
  EXPECT_EQ(mode_of(directory), 0700u);
  ASSERT_EQ(blocks_in(directory).size(), 1u);
  auto block = blocks_in(directory).front();
  EXPECT_EQ(mode_of(block), 0600u);
  EXPECT_EQ(mode_of(block.substr(0, block.rfind('/'))), 0700u);
}

TEST_P(DiskCache, ShowsNoSecretsInItsFiles) {
  remote->put("https://h/a?token=secret1", "one");
  remote->put("https://h/a?token=secret2", "two");
  disk_cache cache(remote, options_of());
  EXPECT_EQ(read(cache, "https://h/a?token=secret1"), "one");
  EXPECT_EQ(read(cache, "https://h/a?token=secret2"), "two");
  for (auto& path : blocks_in(directory)) {
    std::ifstream file(path, std::ios::binary);
    std::string text((std::istreambuf_iterator<char>(file)), {});
    EXPECT_THAT(text, HasSubstr("https://h/a?token=..."));
    EXPECT_THAT(text, testing::Not(HasSubstr("secret")));
  }
}

TEST_P(DiskCache, KeepsLongObjectsInBlocks) {
  auto content = random_text(10'000, 1);
  remote->put("s3://b/long", content);
  disk_cache cache(remote, options_of());
  EXPECT_EQ(read(cache, "s3://b/long"), content);
  EXPECT_THAT(
      remote->requests(),
      UnorderedElementsAre("s3://b/long 0+4096", "s3://b/long 4096+4096", "s3://b/long 8192+1808"));
  EXPECT_EQ(read(cache, "s3://b/long"), content);
  EXPECT_EQ(remote->count(), 3u);
  EXPECT_EQ(blocks_in(directory).size(), 3u);
}

static task<std::string> part_of(const disk_cache& cache, std::string url, std::uint64_t offset,
                                 std::size_t bytes) {
  auto from = co_await cache.open(std::move(url), false);
  auto part = co_await from->read_at(offset, bytes);
  co_return std::string(part.text());
}

TEST_P(DiskCache, FetchesTheBlocksOfTheRangesThatAreRead) {
  auto content = random_text(20'000, 2);
  remote->put("s3://b/long", content);
  disk_cache cache(remote, options_of());
  EXPECT_EQ(sync_wait(where, part_of(cache, "s3://b/long", 9000, 10)), content.substr(9000, 10));
  EXPECT_EQ(sync_wait(where, part_of(cache, "s3://b/long", 9500, 3000)),
            content.substr(9500, 3000));
  EXPECT_THAT(remote->requests(),
              ElementsAre("s3://b/long 0+4096", "s3://b/long 8192+4096", "s3://b/long 12288+4096"));
}

static task<std::string> streamed(const disk_cache& cache, std::string url,
                                  stream_options options) {
  std::string all;
  auto chunks = cache.stream(std::move(url), options);
  while (auto* chunk = co_await chunks.next()) all += chunk->text();
  co_return all;
}

TEST_P(DiskCache, Streams) {
  auto content = random_text(20'000, 3);
  remote->put("s3://b/long", content);
  disk_cache cache(remote, options_of());
  for (int i = 0; i < 2; ++i)
    EXPECT_EQ(
        sync_wait(where, streamed(cache, "s3://b/long", {.offset = 5000, .chunk_bytes = 700})),
        content.substr(5000));
  EXPECT_EQ(remote->count(), 5u);
  EXPECT_THAT([&] { (void)sync_wait(where, streamed(cache, "s3://b/long", {.chunk_bytes = 0})); },
              ThrowsMessage<error>(HasSubstr("chunk_bytes")));
}

TEST_P(DiskCache, ReportsAbsentObjects) {
  disk_cache cache(remote, options_of());
  EXPECT_EQ(sync_wait(where, cache.open("s3://b/a", true)), nullptr);
  EXPECT_THAT([&] { (void)sync_wait(where, cache.open("s3://b/a", false)); },
              ThrowsMessage<error>("read s3://b/a: no such object"));
  EXPECT_THAT([&] { (void)read(cache, "s3://b/a"); },
              ThrowsMessage<error>("read s3://b/a: no such object"));
}

TEST_P(DiskCache, LongObjectsWithoutATagAreNotCached) {
  auto content = random_text(10'000, 4);
  remote->put("s3://b/long", content, "");
  remote->put("s3://b/short", "short", "");
  disk_cache cache(remote, options_of());
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(read(cache, "s3://b/long"), content);
    EXPECT_EQ(read(cache, "s3://b/short"), "short");
  }
  EXPECT_EQ(blocks_in(directory).size(), 1u);
  EXPECT_EQ(cache.stats().uncached, 2u);
}

static task<> read_many(const disk_cache& cache, std::string url, int count,
                        std::vector<buffer>& into) {
  std::vector<task<buffer>> reads;
  for (int i = 0; i < count; ++i) reads.push_back(cache.read(url));
  into = co_await when_all(std::move(reads));
}

static task<> open_gate(std::shared_ptr<event> gate, const disk_cache& cache, std::uint64_t waits) {
  while (cache.stats().waits < waits) co_await sleep(std::chrono::milliseconds(1));
  gate->set();
}

TEST_P(DiskCache, ConcurrentReadersFetchAnObjectOnce) {
  remote->put("s3://b/a", "content");
  remote->gate = std::make_shared<event>();
  disk_cache cache(remote, options_of());
  std::vector<buffer> results;
  auto both = [](const disk_cache& from, std::shared_ptr<event> gate,
                 std::vector<buffer>& into) -> task<> {
    co_await when_all(read_many(from, "s3://b/a", 20, into), open_gate(std::move(gate), from, 19));
  };
  sync_wait(where, both(cache, remote->gate, results));
  EXPECT_EQ(results.size(), 20u);
  for (auto& each : results) EXPECT_EQ(each.text(), "content");
  EXPECT_EQ(remote->count(), 1u);
}

// A store whose first request waits.
class waiting_store final : public store {
 public:
  explicit waiting_store(std::shared_ptr<const store> of) : of_(std::move(of)) {}

  task<object_part> read_part(std::string url, std::uint64_t offset, std::size_t bytes,
                              std::string etag) const override {
    if (count_++ == 0) {
      started.set();
      co_await released;
    }
    co_return co_await of_->read_part(std::move(url), offset, bytes, std::move(etag));
  }
  task<buffer> read(std::string url) const override { return of_->read(std::move(url)); }
  task<std::shared_ptr<const byte_reader>> open(std::string url,
                                                bool may_be_absent) const override {
    return of_->open(std::move(url), may_be_absent);
  }
  async_generator<buffer> stream(std::string url, stream_options options) const override {
    return of_->stream(std::move(url), options);
  }

  mutable event started;
  mutable event released;

 private:
  std::shared_ptr<const store> of_;
  mutable std::atomic<int> count_ = 0;
};

static task<> await_event(event& of) { co_await of; }

TEST_P(DiskCache, ASlowFetchDoesNotBlockOtherReadersForEver) {
  remote->put("s3://b/a", "content");
  auto waiting = std::make_shared<waiting_store>(remote);
  disk_cache cache(waiting, options_of());
  std::thread first([&] { EXPECT_EQ(read(cache, "s3://b/a"), "content"); });
  sync_wait(where, await_event(waiting->started));
  EXPECT_EQ(read(cache, "s3://b/a"), "content");
  waiting->released.set();
  first.join();
}

TEST_P(DiskCache, AStopEndsTheWaitForAnother) {
  remote->put("s3://b/a", "content");
  remote->gate = std::make_shared<event>();
  disk_cache first(remote, options_of());
  disk_cache second(remote, options_of());
  auto stopped = [](const disk_cache& fetches, const disk_cache& waits,
                    std::shared_ptr<counted_store> from) -> task<std::string> {
    scope fetching(co_await this_context());
    fetching.start(fetches.read("s3://b/a"));
    while (from->count() == 0) co_await sleep(std::chrono::milliseconds(1));
    std::string why;
    try {
      (void)co_await with_timeout(std::chrono::milliseconds(100), waits.read("s3://b/a"), "wait");
    } catch (const error& failure) {
      why = failure.what();
    }
    from->gate->set();
    co_await fetching.join();
    auto later = co_await waits.read("s3://b/a");
    co_return why + " " + std::string(later.text());
  };
  EXPECT_EQ(sync_wait(where, stopped(first, second, remote)), "wait: timed out content");
  EXPECT_EQ(remote->count(), 1u);
}

TEST_P(DiskCache, AFailureIsNotCached) {
  disk_cache cache(remote, options_of());
  EXPECT_THAT([&] { (void)read(cache, "s3://b/a"); }, ThrowsMessage<error>(HasSubstr("no such")));
  remote->put("s3://b/a", "content");
  EXPECT_EQ(read(cache, "s3://b/a"), "content");
}

TEST_P(DiskCache, AFullCacheIsReadThrough) {
  for (int i = 0; i < 10; ++i) remote->put("s3://b/" + std::to_string(i), random_text(1000, 5));
  disk_cache cache(remote, options_of(5 * 1100));
  for (int round = 0; round < 2; ++round)
    for (int i = 0; i < 10; ++i)
      EXPECT_EQ(read(cache, "s3://b/" + std::to_string(i)).size(), 1000u);
  auto stats = cache.stats();
  EXPECT_EQ(stats.hits, 5u) << "what fits stays";
  EXPECT_EQ(stats.refused, 10u);
  EXPECT_EQ(remote->count(), 15u);
  EXPECT_LE(stats.used_bytes, stats.limit_bytes);
}

TEST_P(DiskCache, RangesBeyondTheLimitAreNotFetchedAsBlocks) {
  auto content = random_text(20'000, 11);
  remote->put("s3://b/a", content);
  disk_cache cache(remote, options_of(9'000));
  EXPECT_EQ(sync_wait(where, part_of(cache, "s3://b/a", 5000, 10)), content.substr(5000, 10));
  EXPECT_EQ(sync_wait(where, part_of(cache, "s3://b/a", 9000, 10)), content.substr(9000, 10));
  remote->forget_requests();
  EXPECT_EQ(sync_wait(where, part_of(cache, "s3://b/a", 9000, 10)), content.substr(9000, 10));
  EXPECT_EQ(sync_wait(where, part_of(cache, "s3://b/a", 5000, 10)), content.substr(5000, 10));
  EXPECT_THAT(remote->requests(), ElementsAre("s3://b/a 9000+10"));
  EXPECT_EQ(sync_wait(where, streamed(cache, "s3://b/a", {})), content);
  EXPECT_EQ(read(cache, "s3://b/a"), content);
}

static void read_in_epoch(runtime& where, const std::string& prefix, std::uint64_t epoch, int first,
                          int last) {
  std::vector<sample> samples;
  for (int i = first; i < last; ++i) samples.emplace_back(prefix + std::to_string(i), i);
  for (auto& each : where.run(from(samples) | map(io::read), {.epoch = epoch})) (void)each;
}

TEST_P(DiskCache, EvictsBetweenEpochsWhatTheLastOneDidNotUse) {
  mount("evict://", remote);
  for (int i = 0; i < 10; ++i) remote->put("evict://" + std::to_string(i), random_text(1000, 6));
  auto cache = mount_disk_cache("evict://", options_of(5 * 1100));
  read_in_epoch(where, "evict://", 0, 0, 5);
  read_in_epoch(where, "evict://", 1, 3, 8);  // 3 and 4 are there, for 5 to 7 there is no room
  EXPECT_EQ(cache->stats().refused, 3u);
  EXPECT_EQ(cache->stats().evicted, 0u);
  remote->forget_requests();
  read_in_epoch(where, "evict://", 2, 3, 8);
  EXPECT_EQ(cache->stats().evicted, 3u);
  EXPECT_EQ(remote->count(), 3u);
  read_in_epoch(where, "evict://", 3, 3, 8);
  EXPECT_EQ(remote->count(), 3u) << "all of them fit now";
  unmount("evict://");
}

TEST_P(DiskCache, EvictsAfterTheLargestEpochNumber) {
  constexpr auto last = ~std::uint64_t{0};
  mount("last://", remote);
  for (int i = 0; i < 10; ++i) remote->put("last://" + std::to_string(i), random_text(1000, 6));
  auto cache = mount_disk_cache("last://", options_of(5 * 1100));
  read_in_epoch(where, "last://", 0, 0, 5);
  read_in_epoch(where, "last://", 1, 3, 8);
  for (int again = 0; again < 2; ++again) read_in_epoch(where, "last://", last, 3, 8);
  EXPECT_EQ(cache->stats().evicted, 3u);
  cache->begin_epoch();
  read_in_epoch(where, "last://", 2, 3, 8);
  EXPECT_EQ(remote->count(), 5u + 3 + 3);
  unmount("last://");
}

TEST_P(DiskCache, NeverEvictsWhatTheLastEpochUsed) {
  for (int i = 0; i < 10; ++i) remote->put("s3://b/" + std::to_string(i), random_text(1000, 7));
  disk_cache cache(remote, options_of(5 * 1100));
  for (int epoch = 0; epoch < 4; ++epoch) {
    for (int i = 0; i < 10; ++i) (void)read(cache, "s3://b/" + std::to_string(i));
    cache.begin_epoch();
  }
  EXPECT_EQ(cache.stats().evicted, 0u);
  EXPECT_EQ(cache.stats().hits, 15u) << "a pass over a set that does not fit hits what does";
}

TEST_P(DiskCache, DamagedBlocksAreFetchedAgain) {
  const auto seed = test::new_seed();
  SCOPED_TRACE("LADE_SEED=" + std::to_string(seed));
  std::mt19937_64 random(seed);
  auto content = random_text(10'000, seed);
  remote->put("s3://b/a", content);
  (void)read(disk_cache(remote, options_of()), "s3://b/a");
  for (int round = 0; round < 60; ++round) {
    auto paths = blocks_in(directory);
    auto path = paths[random() % paths.size()];
    auto size = std::filesystem::file_size(path);
    if (random() % 4 == 0) {
      std::filesystem::resize_file(path, random() % size);
    } else {
      std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
      auto at = static_cast<std::streamoff>(random() % size);
      file.seekg(at);
      auto byte = file.get();
      file.seekp(at);
      file.put(static_cast<char>(byte ^ (1 << random() % 8)));
    }
    remote->forget_requests();
    disk_cache cache(remote, options_of());
    if (random() % 2) {
      ASSERT_EQ(read(cache, "s3://b/a"), content);
    } else {
      ASSERT_EQ(sync_wait(where, part_of(cache, "s3://b/a", 4000, 5000)),
                content.substr(4000, 5000));
      ASSERT_EQ(read(cache, "s3://b/a"), content);
    }
    EXPECT_EQ(cache.stats().damaged, 1u);
    EXPECT_EQ(remote->count(), 1u);
  }
}

// A file that is whole in itself, but shorter than the block that it says it is.
TEST_P(DiskCache, ABlockOfAnotherLengthIsFetchedAgain) {
  remote->put("s3://b/a", "content");
  (void)read(disk_cache(remote, options_of()), "s3://b/a");
  auto path = blocks_in(directory).front();
  std::ifstream file(path, std::ios::binary);
  const std::string before{std::istreambuf_iterator<char>(file), {}};
  auto label = detail::decode_label(std::as_bytes(std::span(before)), before.size());
  ASSERT_TRUE(label);
  const std::string shorter = "con";
  label->content_bytes = shorter.size();
  label->content_crc = crc32c(std::as_bytes(std::span(shorter))).value();
  std::ofstream(path, std::ios::binary) << shorter << detail::encode_label(*label);
  disk_cache cache(remote, options_of());
  EXPECT_EQ(sync_wait(where, part_of(cache, "s3://b/a", 4, 3)), "ent");
  EXPECT_EQ(read(cache, "s3://b/a"), "content");
  EXPECT_EQ(cache.stats().damaged, 1u);
}

// Flips a bit of the content of the one block that there is.
static void flip_content(const std::string& directory) {
  std::fstream file(blocks_in(directory).front(), std::ios::binary | std::ios::in | std::ios::out);
  file.put('C');
}

TEST_P(DiskCache, VerifiesABlockOncePerProcessOrAtEveryRead) {
  remote->put("s3://b/a", "content");
  (void)read(disk_cache(remote, options_of()), "s3://b/a");
  disk_cache once(remote, options_of());
  auto options = options_of();
  options.verify_every_read = true;
  disk_cache always(remote, options);
  EXPECT_EQ(read(once, "s3://b/a"), "content");
  EXPECT_EQ(read(always, "s3://b/a"), "content");
  flip_content(directory);
  EXPECT_EQ(read(once, "s3://b/a"), "Content") << "the page cache is trusted";
  EXPECT_EQ(read(always, "s3://b/a"), "content");
  EXPECT_EQ(always.stats().damaged, 1u);
}

TEST_P(DiskCache, AChangedObjectFailsOnceAndIsThenFetchedAgain) {
  auto before = random_text(10'000, 8), after = random_text(9'000, 9);
  remote->put("s3://b/a", before, "v1");
  disk_cache cache(remote, options_of());
  EXPECT_EQ(sync_wait(where, part_of(cache, "s3://b/a", 0, 10)), before.substr(0, 10));
  remote->put("s3://b/a", after, "v2");
  EXPECT_THAT(
      [&] { (void)read(cache, "s3://b/a"); },
      ThrowsMessage<error>("read s3://b/a: the object has changed since a part of it was cached"));
  EXPECT_EQ(read(cache, "s3://b/a"), after);
}

// Others may be read by then, and keep what they have fetched.
TEST_P(DiskCache, AReaderOfTheObjectBeforeTheChangeRemovesNothingOfTheNextOne) {
  auto before = random_text(10'000, 8), after = random_text(9'000, 9);
  remote->put("s3://b/a", before, "v1");
  disk_cache cache(remote, options_of());
  auto old = sync_wait(where, cache.open("s3://b/a", false));
  remote->put("s3://b/a", after, "v2");
  EXPECT_EQ(code_of([&] { (void)read(cache, "s3://b/a"); }), errc::changed);
  EXPECT_EQ(read(cache, "s3://b/a"), after);
  remote->forget_requests();
  EXPECT_EQ(code_of([&] { (void)sync_wait(where, old->read_at(5000, 10)); }), errc::changed);
  EXPECT_EQ(read(cache, "s3://b/a"), after);
  EXPECT_THAT(remote->requests(), IsEmpty());
}

// A store whose parts pass through a function.
class altered_store final : public store {
 public:
  explicit altered_store(std::shared_ptr<const store> of) : of_(std::move(of)) {}

  task<object_part> read_part(std::string url, std::uint64_t offset, std::size_t bytes,
                              std::string etag) const override {
    auto part = co_await of_->read_part(std::move(url), offset, bytes, std::move(etag));
    if (alter) co_return alter(part);
    co_return part;
  }
  task<buffer> read(std::string url) const override { return of_->read(std::move(url)); }
  task<std::shared_ptr<const byte_reader>> open(std::string url,
                                                bool may_be_absent) const override {
    return of_->open(std::move(url), may_be_absent);
  }
  async_generator<buffer> stream(std::string url, stream_options options) const override {
    return of_->stream(std::move(url), options);
  }

  std::function<object_part(const object_part&)> alter;

 private:
  std::shared_ptr<const store> of_;
};

TEST_P(DiskCache, FailuresOfTheStoreKeepTheirMessageAndCachedBlocks) {
  auto content = random_text(10'000, 12);
  remote->put("s3://b/a", content);
  auto altered = std::make_shared<altered_store>(remote);
  disk_cache cache(altered, options_of());
  EXPECT_EQ(sync_wait(where, part_of(cache, "s3://b/a", 0, 10)), content.substr(0, 10));
  auto read_next_block = [&] { (void)sync_wait(where, part_of(cache, "s3://b/a", 5000, 10)); };
  altered->alter = [](auto&) -> object_part {
    throw error(errc::invalid_data, "read s3://b/a", "the body has another checksum");
  };
  EXPECT_THAT(read_next_block,
              ThrowsMessage<error>("read s3://b/a: the body has another checksum"));
  altered->alter = [](auto& part) {
    return object_part(part.content().slice(0, 100), part.object_bytes(), part.etag());
  };
  EXPECT_THAT(
      read_next_block,
      ThrowsMessage<error>("read s3://b/a: its store returned 100 of the 4096 bytes from 4096 on"));
  altered->alter = nullptr;
  EXPECT_EQ(read(cache, "s3://b/a"), content);
  EXPECT_THAT(remote->requests(), Contains("s3://b/a 0+4096").Times(1));
}

TEST_P(DiskCache, APartOfAnotherEntityIsAChangeWhateverTheStoreSays) {
  auto content = random_text(10'000, 12);
  remote->put("s3://b/a", content);
  auto altered = std::make_shared<altered_store>(remote);
  for (auto* tag : {"v1", "v2"}) {
    disk_cache cache(altered, options_of());
    (void)sync_wait(where, part_of(cache, "s3://b/a", 0, 10));
    altered->alter = [&](auto& part) {
      return object_part(part.content(), part.object_bytes() + 1, tag);
    };
    EXPECT_EQ(code_of([&] { (void)sync_wait(where, part_of(cache, "s3://b/a", 5000, 10)); }),
              errc::changed);
    EXPECT_THAT(blocks_in(directory), IsEmpty());
    altered->alter = nullptr;
  }
}

TEST_P(DiskCache, KeepsObjectsOfSeveralStoresInADirectory) {
  auto other = std::make_shared<counted_store>();
  remote->name = "one";
  other->name = "two";
  for (auto bytes : {100u, 10'000u}) {
    auto url = "s3://b/" + std::to_string(bytes);
    remote->put(url, random_text(bytes, 13));
    other->put(url, random_text(bytes, 14));
    for (int i = 0; i < 2; ++i) {
      disk_cache of_one(remote, options_of()), of_other(other, options_of());
      EXPECT_EQ(read(of_one, url), random_text(bytes, 13));
      EXPECT_EQ(read(of_other, url), random_text(bytes, 14));
      EXPECT_EQ(sync_wait(where, part_of(of_one, url, 50, 50)),
                random_text(bytes, 13).substr(50, 50));
      EXPECT_EQ(sync_wait(where, of_other.open(url, true))->size(), bytes);
    }
  }
  EXPECT_EQ(remote->count(), 4u);
  EXPECT_EQ(other->count(), 4u);
}

TEST_P(DiskCache, HasTheIdentityOfItsStore) {
  remote->name = "one";
  auto cached = std::make_shared<const disk_cache>(remote, options_of());
  EXPECT_EQ(sync_wait(where, cached->identity()), "one");
  EXPECT_EQ(sync_wait(where, memory_cache(cached).identity()), "one");
  EXPECT_EQ(sync_wait(where, altered_store(remote).identity()), "")
      << "what a store says by itself";
}

TEST_P(DiskCache, AssumesThatObjectsAreImmutable) {
  remote->put("s3://b/a", "before", "v1");
  disk_cache cache(remote, options_of());
  (void)read(cache, "s3://b/a");
  remote->put("s3://b/a", "after", "v2");
  EXPECT_EQ(read(cache, "s3://b/a"), "before");
}

TEST_P(DiskCache, AsksOncePerProcessWhetherAnObjectHasChanged) {
  auto options = options_of();
  options.freshness = freshness::once_per_process;
  remote->put("s3://b/a", "before", "v1");
  remote->put("s3://b/same", "same", "v1");
  (void)read(disk_cache(remote, options), "s3://b/a");
  (void)read(disk_cache(remote, options), "s3://b/same");
  remote->put("s3://b/a", "after", "v2");
  remote->forget_requests();
  disk_cache cache(remote, options);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(read(cache, "s3://b/a"), "after");
    EXPECT_EQ(read(cache, "s3://b/same"), "same");
  }
  EXPECT_THAT(remote->requests(), ElementsAre("s3://b/a 0+1", "s3://b/a 0+5", "s3://b/same 0+1"));
}

// A write beyond the limit of this process fails, as on a full disk.
TEST_P(DiskCache, AFullDiskIsReadThrough) {
  for (int i = 0; i < 3; ++i) remote->put("s3://b/" + std::to_string(i), random_text(3000, 10));
  remote->put("s3://b/small", "small");
  disk_cache cache(remote, options_of());
  struct rlimit before;
  getrlimit(RLIMIT_FSIZE, &before);
  auto old = std::signal(SIGXFSZ, SIG_IGN);
  struct rlimit small{1000, before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &small);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(read(cache, "s3://b/" + std::to_string(i)).size(), 3000u);
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, old);
  EXPECT_EQ(cache.stats().failures, 3u);
  EXPECT_EQ(cache.stats().used_bytes, 0u);
  EXPECT_THAT(cache.failure(), HasSubstr("write to the cache " + directory));
  EXPECT_THAT(blocks_in(directory), IsEmpty()) << "no half of a file stays";
}

// Runs the work on a thread for which a disk of so many bytes is mounted at `path`. Returns why
// that could not be done; empty if it was.
static std::string with_small_disk(const std::string& path, std::size_t bytes,
                                   const std::function<void()>& work) {
  std::string why_not;
  std::thread elsewhere([&] {
    auto size = "size=" + std::to_string(bytes);
    bool is_mounted = ::unshare(CLONE_NEWNS) == 0 &&
                      ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
                      ::mount("none", path.c_str(), "tmpfs", 0, size.c_str()) == 0;
    if (is_mounted)
      EXPECT_NO_THROW(work());
    else
      why_not = std::generic_category().message(errno);
  });
  elsewhere.join();
  return why_not;
}

// Writes a file until the disk has no space for another page of it.
static void fill_disk(const std::string& path) {
  int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  ASSERT_GE(fd, 0);
  const std::string page(4096, 'x');
  while (::write(fd, page.data(), page.size()) > 0) {}
  EXPECT_EQ(errno, ENOSPC);
  ::close(fd);
}

TEST_P(DiskCache, ADiskWithoutSpaceIsReadThrough) {
  auto content = random_text(3000, 10);
  for (int i = 0; i < 3; ++i) remote->put("s3://b/" + std::to_string(i), content);
  for (bool is_full_from_the_start : {true, false}) {
    auto why_not = with_small_disk(parent.path().string(), 8 << 20, [&] {
      if (is_full_from_the_start) fill_disk(parent / "other");
      disk_cache cache(remote, options_of());
      runtime there(options());
      auto read_all = [&] {
        for (int i = 0; i < 3; ++i) {
          auto got = sync_wait(there, cache.read("s3://b/" + std::to_string(i)));
          EXPECT_TRUE(got.text() == content);
        }
      };
      if (!is_full_from_the_start) {
        EXPECT_EQ(sync_wait(there, cache.read("s3://b/0")).text(), content);
        fill_disk(parent / "other");
      }
      read_all();
      read_all();
      auto kept = is_full_from_the_start ? 0u : 1u;
      EXPECT_EQ(cache.stats().hits, 2 * kept);
      EXPECT_EQ(cache.stats().failures, 6 - 2 * kept);
      EXPECT_THAT(cache.failure(), HasSubstr("No space left on device"));
      EXPECT_EQ(blocks_in(directory).size(), kept) << "no half of a file stays";
    });
    if (!why_not.empty()) GTEST_SKIP() << why_not;
  }
}

TEST_P(DiskCache, ADirectoryThatCannotBeWrittenIsReadThrough) {
  remote->put("s3://b/a", "content");
  remote->put("s3://b/b", "other");
  (void)read(disk_cache(remote, options_of()), "s3://b/a");
  std::filesystem::remove(directory + "/new");
  parent.write("cache/new", "no directory");
  disk_cache cache(remote, options_of());
  EXPECT_EQ(read(cache, "s3://b/a"), "content");
  EXPECT_EQ(read(cache, "s3://b/b"), "other");
  EXPECT_EQ(cache.stats().hits, 1u);
  EXPECT_EQ(cache.stats().failures, 1u);
}

TEST_P(DiskCache, RemovingAFileThatGrewFreesItsSpace) {
  for (auto* url : {"s3://b/a", "s3://b/b"}) remote->put(url, "content");
  disk_cache cache(remote, options_of());
  (void)read(cache, "s3://b/a");
  std::ofstream(blocks_in(directory).front(), std::ios::app) << std::string(100'000, 'x');
  for (auto* url : {"s3://b/a", "s3://b/b", "s3://b/a", "s3://b/b"})
    EXPECT_EQ(read(cache, url), "content");
  EXPECT_EQ(cache.stats().damaged, 1u);
  EXPECT_EQ(cache.stats().refused, 0u);
  EXPECT_EQ(remote->count(), 3u);
}

TEST_P(DiskCache, OtherThanRegularFilesAreReplacedByBlocks) {
  const auto content = random_text(10'000, 11);
  remote->put("s3://b/small", "content");
  remote->put("s3://b/long", content);
  using put_there = void (*)(const std::string& path);
  const put_there kinds[] = {
      [](auto& path) { ASSERT_EQ(mkfifo(path.c_str(), 0600), 0); },
      [](auto& path) { std::filesystem::create_symlink("/dev/zero", path); },
      [](auto& path) { std::filesystem::create_symlink(path, path); },
  };
  for (auto put : kinds) {
    disk_cache cache(remote, options_of());
    for (int turn = 0; turn < 2; ++turn) {
      EXPECT_EQ(read(cache, "s3://b/small"), "content");
      EXPECT_EQ(sync_wait(where, part_of(cache, "s3://b/long", 5'000, 4'000)),
                content.substr(5'000, 4'000));
      for (auto& path : blocks_in(directory)) {
        std::filesystem::remove(path);
        put(path);
      }
    }
    EXPECT_EQ(sync_wait(where, streamed(cache, "s3://b/long", {})), content);
    EXPECT_EQ(read(cache, "s3://b/small"), "content");
  }
  mkfifo((directory + "/new/fifo").c_str(), 0600);
  disk_cache later(remote, options_of());
  remote->forget_requests();
  EXPECT_EQ(read(later, "s3://b/small"), "content");
  EXPECT_EQ(remote->count(), 0u);
}

// As many descriptors as the process may have, until destroyed.
class all_descriptors {
 public:
  all_descriptors() {
    getrlimit(RLIMIT_NOFILE, &before_);
    auto few = before_;
    few.rlim_cur = 256;
    setrlimit(RLIMIT_NOFILE, &few);
    for (int fd; (fd = dup(0)) >= 0;) fds_.push_back(fd);
  }
  all_descriptors(const all_descriptors&) = delete;
  ~all_descriptors() {
    for (int fd : fds_) close(fd);
    setrlimit(RLIMIT_NOFILE, &before_);
  }

 private:
  struct rlimit before_;
  std::vector<int> fds_;
};

// Other processes use them.
TEST_P(DiskCache, BlocksThatCannotBeOpenedForAPassingReasonAreNotRemoved) {
  for (int i = 0; i < 5; ++i) remote->put("s3://b/" + std::to_string(i), "content");
  auto read_all = [&](const disk_cache& cache) {
    for (int i = 0; i < 5; ++i) EXPECT_EQ(read(cache, "s3://b/" + std::to_string(i)), "content");
  };
  disk_cache cache(remote, options_of());
  read_all(cache);
  ASSERT_EQ(blocks_in(directory).size(), 5u);
  {
    const all_descriptors used_up;
    read_all(cache);
  }
  EXPECT_EQ(cache.stats().damaged, 0u);
  EXPECT_EQ(blocks_in(directory).size(), 5u);
  remote->forget_requests();
  read_all(cache);
  EXPECT_EQ(remote->count(), 0u);
}

TEST_P(DiskCache, WithOptionsThatCannotWorkIsRefused) {
  EXPECT_THAT([&] { disk_cache(nullptr, options_of()); },
              ThrowsMessage<error>("open a cache: the store is null"));
  EXPECT_THAT([&] { disk_cache(remote, {}); },
              ThrowsMessage<error>("open a cache: no directory is set"));
  EXPECT_THAT([&] { disk_cache(remote, options_of(0)); },
              ThrowsMessage<error>(HasSubstr("max_bytes")));
  EXPECT_THAT([&] { disk_cache(remote, options_of(100, 100)); },
              ThrowsMessage<error>(HasSubstr("block_bytes")));
  parent.write("file", "");
  auto path = parent / "file";
  EXPECT_THAT([&] { disk_cache(remote, {.directory = path}); },
              ThrowsMessage<error>("open the cache " + path + ": Not a directory"));
  std::filesystem::create_directory(parent / "open");
  std::filesystem::permissions(parent / "open", std::filesystem::perms::all);
  auto open_to_all = parent / "open";
  EXPECT_THAT([&] { disk_cache(remote, {.directory = open_to_all}); },
              ThrowsMessage<error>(HasSubstr("others may write to it")));
  EXPECT_THAT([&] { mount_disk_cache("/a/path", options_of()); },
              ThrowsMessage<error>(HasSubstr("'/a/path' is no URL")));
}

TEST_P(DiskCache, WhatWasLeftBehindIsRemovedAndCounted) {
  remote->put("s3://b/a", "content");
  (void)read(disk_cache(remote, options_of()), "s3://b/a");
  parent.write("cache/new/1-1-1", "half of a file");
  disk_cache cache(remote, options_of());
  EXPECT_THAT(std::filesystem::directory_iterator(directory + "/new"),
              std::filesystem::directory_iterator());
  EXPECT_EQ(cache.stats().used_bytes, std::filesystem::file_size(blocks_in(directory).front()));
}

// Reads of all kinds, with evictions, damage and other processes' caches, are those of the objects.
TEST_P(DiskCache, RandomReadsAreThoseOfTheStore) {
  const auto seed = test::new_seed();
  SCOPED_TRACE("LADE_SEED=" + std::to_string(seed));
  std::mt19937_64 random(seed);
  std::vector<std::string> contents;
  for (std::uint64_t i = 0; i < 12; ++i) {
    contents.push_back(random_text(random() % 20'000, seed + i));
    remote->put("s3://b/" + std::to_string(i), contents.back(), random() % 4 ? "v1" : "");
  }
  std::vector<std::shared_ptr<const disk_cache>> caches;
  for (int i = 0; i < 2; ++i)
    caches.push_back(std::make_shared<const disk_cache>(remote, options_of(60'000)));
  for (int step = 0; step < 400; ++step) {
    auto& cache = *caches[random() % caches.size()];
    auto number = random() % contents.size();
    auto& content = contents[number];
    auto url = "s3://b/" + std::to_string(number);
    auto offset = random() % (content.size() + 1);
    auto bytes = random() % (content.size() - offset + 1);
    switch (random() % 5) {
      case 0: ASSERT_EQ(read(cache, url), content); break;
      case 1:
        ASSERT_EQ(sync_wait(where, part_of(cache, url, offset, bytes)),
                  content.substr(offset, bytes));
        break;
      case 2:
        ASSERT_EQ(
            sync_wait(where,
                      streamed(cache, url, {.offset = offset, .chunk_bytes = 1 + random() % 9000})),
            content.substr(offset));
        break;
      case 3:
        ASSERT_EQ(sync_wait(where, cache.read_part(url, offset, bytes, "")).content().text(),
                  content.substr(offset, bytes));
        break;
      default: cache.begin_epoch();
    }
    ASSERT_LE(cache.stats().used_bytes, 60'000u);
  }
}

TEST(CacheUse, AFileOfAnotherFormatIsReplacedByAProcessThatIsAlone) {
  using lade::detail::cache_use;
  temp_dir dir;
  const auto path = dir / "use";
  cache_use(path, true).set_used_bytes(7);
  EXPECT_EQ(cache_use(path, false).used_bytes(), 7u);
  std::fstream(path, std::ios::in | std::ios::out) << "stranger";
  cache_use beside(path, false);
  EXPECT_FALSE(beside.is_shared());
  EXPECT_EQ(beside.used_bytes(), 0u);
  cache_use alone(path, true);
  EXPECT_TRUE(alone.is_shared());
  EXPECT_EQ(alone.used_bytes(), 0u);
}

}  // namespace lade::io::disk_cache_test
