#include <lade/buffer_pool.hpp>
#include <lade/error.hpp>
#include <lade/event.hpp>
#include <lade/io/file.hpp>
#include <lade/io/memory_cache.hpp>
#include <lade/lade.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "../support/counted_store.hpp"

namespace lade::io::memory_cache_test {

using test::counted_store;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

class MemoryCache : public testing::Test {
 protected:
  std::string read(const memory_cache& cache, std::string url) {
    return std::string(sync_wait(where, cache.read(std::move(url))).text());
  }

  std::shared_ptr<counted_store> remote = std::make_shared<counted_store>();
  runtime where{{.threads = 2}};
};

TEST_F(MemoryCache, FetchesAnObjectOnce) {
  remote->put("s3://b/a", "content");
  remote->put("s3://b/empty", "");
  memory_cache cache(remote);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(read(cache, "s3://b/a"), "content");
    EXPECT_EQ(read(cache, "s3://b/empty"), "");
  }
  EXPECT_THAT(remote->requests(), ElementsAre("s3://b/a 0+7", "s3://b/empty 0+0"));
  EXPECT_EQ(cache.stats().hits, 4u);
  EXPECT_EQ(cache.stats().used_bytes, 7u);
}

TEST_F(MemoryCache, CopiesAnObjectOnAMissOnly) {
  remote->put("s3://b/a", "content");
  memory_cache cache(remote);
  auto first = sync_wait(where, cache.read("s3://b/a"));
  auto second = sync_wait(where, cache.read("s3://b/a"));
  auto third = sync_wait(where, cache.read("s3://b/a"));
  EXPECT_NE(first.data(), second.data());
  EXPECT_EQ(second.data(), third.data()) << "a hit copies nothing";
}

static task<std::string> used_in_all_ways(const memory_cache& cache, std::string url) {
  auto from = co_await cache.open(url, false);
  auto part = co_await from->read_at(2, 3);
  auto text = std::string(part.text()) + " " + std::string(from->etag()) + " ";
  auto chunks = cache.stream(url, {.offset = 1, .chunk_bytes = 2});
  while (auto* chunk = co_await chunks.next()) text += std::string(chunk->text()) + ",";
  auto range = co_await cache.read_part(url, 5, 100, "v1");
  co_return text + " " + std::string(range.content().text());
}

TEST_F(MemoryCache, IsOpenedStreamedAndReadInParts) {
  remote->put("s3://b/a", "content");
  memory_cache cache(remote);
  EXPECT_EQ(sync_wait(where, used_in_all_ways(cache, "s3://b/a")), "nte v1 on,te,nt, nt");
  EXPECT_EQ(remote->count(), 1u);
  EXPECT_EQ(sync_wait(where, cache.open("s3://b/none", true)), nullptr);
  EXPECT_THAT([&] { (void)sync_wait(where, cache.read_part("s3://b/a", 0, 1, "v2")); },
              ThrowsMessage<error>("read s3://b/a: the object has changed"));
}

TEST_F(MemoryCache, BehindTheEndOfAnObjectIsAnEmptyPart) {
  remote->put("s3://b/a", "content");
  remote->put("s3://b/long", std::string(100, 'x'));
  memory_cache cache(remote, {.max_object_bytes = 10});
  for (int round = 0; round < 2; ++round)
    for (std::string url : {"s3://b/a", "s3://b/long"})
      for (std::uint64_t offset : {std::uint64_t{100}, std::uint64_t{1} << 40}) {
        auto part = sync_wait(where, cache.read_part(url, offset, 5, "v1"));
        EXPECT_EQ(part.content().size(), 0u);
        EXPECT_EQ(part.object_bytes(), url == "s3://b/a" ? 7u : 100u);
        EXPECT_EQ(part.etag(), "v1");
      }
}

TEST_F(MemoryCache, KeepsWhatFits) {
  for (int i = 0; i < 10; ++i) remote->put("s3://b/" + std::to_string(i), std::string(100, 'x'));
  memory_cache cache(remote, {.max_bytes = 550});
  for (int round = 0; round < 3; ++round)
    for (int i = 0; i < 10; ++i) (void)read(cache, "s3://b/" + std::to_string(i));
  EXPECT_EQ(cache.stats().hits, 10u);
  EXPECT_EQ(cache.stats().refused, 15u);
  EXPECT_EQ(cache.stats().used_bytes, 500u);
  EXPECT_EQ(remote->count(), 20u);
}

TEST_F(MemoryCache, LongObjectsAreReadThrough) {
  remote->put("s3://b/long", std::string(200, 'x'));
  memory_cache cache(remote, {.max_object_bytes = 100});
  for (int i = 0; i < 2; ++i) EXPECT_EQ(read(cache, "s3://b/long").size(), 200u);
  EXPECT_THAT(remote->requests(),
              ElementsAre("s3://b/long 0+100", "s3://b/long 0+200", "s3://b/long 0+200"));
  EXPECT_EQ(cache.stats().uncached, 2u);
}

static void read_in_epoch(runtime& where, std::uint64_t epoch, int first, int last) {
  std::vector<sample> samples;
  for (int i = first; i < last; ++i) samples.emplace_back("kept://" + std::to_string(i), i);
  for (auto& each : where.run(from(samples) | map(io::read), {.epoch = epoch})) (void)each;
}

TEST_F(MemoryCache, EvictsBetweenEpochsWhatTheLastOneDidNotUse) {
  mount("kept://", remote);
  for (int i = 0; i < 10; ++i) remote->put("kept://" + std::to_string(i), std::string(100, 'x'));
  auto cache = mount_memory_cache("kept://", {.max_bytes = 500});
  read_in_epoch(where, 0, 0, 5);
  read_in_epoch(where, 1, 3, 8);
  EXPECT_EQ(cache->stats().refused, 3u);
  EXPECT_EQ(cache->stats().evicted, 0u);
  read_in_epoch(where, 2, 3, 8);
  EXPECT_EQ(cache->stats().evicted, 3u);
  remote->forget_requests();
  read_in_epoch(where, 3, 3, 8);
  EXPECT_EQ(remote->count(), 0u);
  unmount("kept://");
}

TEST_F(MemoryCache, StartsTheLargestEpochNumberOnce) {
  constexpr auto last = ~std::uint64_t{0};
  mount("kept://", remote);
  for (int i = 0; i < 10; ++i) remote->put("kept://" + std::to_string(i), std::string(100, 'x'));
  auto cache = mount_memory_cache("kept://", {.max_bytes = 500});
  read_in_epoch(where, 0, 0, 5);
  read_in_epoch(where, last, 3, 8);
  read_in_epoch(where, 1, 0, 8);  // an earlier one
  EXPECT_EQ(cache->stats().evicted, 0u);
  for (int again = 0; again < 2; ++again) read_in_epoch(where, last, 3, 8);
  EXPECT_EQ(cache->stats().evicted, 0u);
  unmount("kept://");
}

static task<> read_many(const memory_cache& cache, int count, std::vector<buffer>& into) {
  std::vector<task<buffer>> reads;
  for (int i = 0; i < count; ++i) reads.push_back(cache.read("s3://b/a"));
  into = co_await when_all(std::move(reads));
}

static task<> open_gate(std::shared_ptr<event> gate, const memory_cache& cache,
                        std::uint64_t waits) {
  while (cache.stats().waits < waits) co_await sleep(std::chrono::milliseconds(1));
  gate->set();
}

TEST_F(MemoryCache, ConcurrentReadersFetchAnObjectOnce) {
  remote->put("s3://b/a", "content");
  remote->gate = std::make_shared<event>();
  memory_cache cache(remote);
  std::vector<buffer> results;
  auto both = [](const memory_cache& from, std::shared_ptr<event> gate,
                 std::vector<buffer>& into) -> task<> {
    co_await when_all(read_many(from, 20, into), open_gate(std::move(gate), from, 19));
  };
  sync_wait(where, both(cache, remote->gate, results));
  EXPECT_EQ(results.size(), 20u);
  EXPECT_EQ(remote->count(), 1u);
}

// A store whose first request waits until others have the memory that it needs.
class hungry_store final : public store {
 public:
  task<object_part> read_part(std::string, std::uint64_t, std::size_t, std::string) const override {
    if (count++ == 0) {
      started.set();
      co_await memory_is_taken;
    }
    auto content = co_await allocate(16 << 10);
    std::memset(content.data(), 'x', content.size());
    co_return object_part(content, content.size(), "v1");
  }
  task<buffer> read(std::string) const override { co_return buffer(); }
  task<std::shared_ptr<const byte_reader>> open(std::string, bool) const override {
    co_return nullptr;
  }
  async_generator<buffer> stream(std::string, stream_options) const override { co_return; }

  mutable event started, memory_is_taken;
  mutable std::atomic<int> count = 0;
};

// The first item waits for the second one, which fetches the object that both need. The second one
// waits for memory of the third one, which is not delivered before the first.
class read_in_a_circle {
 public:
  read_in_a_circle(std::shared_ptr<const hungry_store> from, const memory_cache& cache)
      : from_(std::move(from)), cache_(cache) {}

  task<buffer> operator()(int item) const {
    if (item != 1) co_await from_->started;
    if (item == 2) {
      auto most = co_await allocate(60 << 10);
      from_->memory_is_taken.set();
      co_return most;
    }
    co_return co_await cache_.read("s3://b/a");
  }

 private:
  std::shared_ptr<const hungry_store> from_;
  const memory_cache& cache_;
};

TEST_F(MemoryCache, AFetchThatWaitsForMemoryCausesNoDeadlock) {
  auto hungry = std::make_shared<hungry_store>();
  memory_cache cache(hungry);
  runtime small({.threads = 2, .memory_bytes = 64 << 10});
  std::vector<std::size_t> sizes;
  for (auto& each : small.run(from(std::vector{0, 1, 2}) |
                              map(read_in_a_circle(hungry, cache), {.concurrency = 3})))
    sizes.push_back(each.size());
  EXPECT_THAT(sizes, ElementsAre(16u << 10, 16u << 10, 60u << 10));
  EXPECT_EQ(hungry->count, 2);
  EXPECT_EQ(cache.stats().waits, 1u);
}

TEST_F(MemoryCache, ItsFiguresAreMetrics) {
  remote->put("s3://b/a", "content");
  memory_cache cache(remote, {.max_bytes = 1000});
  for (int i = 0; i < 3; ++i) read(cache, "s3://b/a");
  metrics all;
  add(all, cache.stats(), {{"cache", "train"}});
  auto text = all.text();
  EXPECT_THAT(text, HasSubstr("# TYPE lade_cache_hits_total counter"));
  EXPECT_THAT(text, HasSubstr("lade_cache_hits_total{cache=\"train\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("lade_cache_hit_bytes_total{cache=\"train\"} 14\n"));
  EXPECT_THAT(text, HasSubstr("lade_cache_misses_total{cache=\"train\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("# TYPE lade_cache_limit_bytes gauge"));
  EXPECT_THAT(text, HasSubstr("lade_cache_limit_bytes{cache=\"train\"} 1000\n"));
  EXPECT_THROW(add(all, cache.stats(), {{"not a name", ""}}), error);
}

TEST_F(MemoryCache, WithOptionsThatCannotWorkIsRefused) {
  EXPECT_THAT([&] { memory_cache(nullptr); },
              ThrowsMessage<error>("open a memory cache: the store is null"));
  EXPECT_THAT([&] { memory_cache(remote, {.max_bytes = 0}); },
              ThrowsMessage<error>(HasSubstr("max_bytes")));
  EXPECT_THAT([&] { memory_cache(remote, {.max_object_bytes = 0}); },
              ThrowsMessage<error>(HasSubstr("max_object_bytes")));
  EXPECT_THAT([] { mount_memory_cache("/a/path"); },
              ThrowsMessage<error>(HasSubstr("'/a/path' is no URL")));
}

}  // namespace lade::io::memory_cache_test
