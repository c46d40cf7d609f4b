#include <lade/batch.hpp>
#include <lade/buffer_pool.hpp>
#include <lade/error.hpp>
#include <lade/from.hpp>
#include <lade/map.hpp>
#include <lade/memory_resource.hpp>
#include <lade/run.hpp>
#include <lade/runtime.hpp>
#include <lade/sample.hpp>
#include <lade/sync_wait.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../support/coroutines.hpp"

namespace lade::memory_resource_test {

using testing::HasSubstr;
using testing::ThrowsMessage;
using testing_support::code_of;

// Counts what is out of it. Its memory is that of the host, whatever device it names.
class counting_resource final : public memory_resource {
 public:
  explicit counting_resource(device where = {device::kind::cuda_host, 0}) : where_(where) {}

  void* allocate(std::size_t bytes, std::size_t alignment) override {
    if (out_bytes + bytes > limit) throw error(errc::limit_exceeded, "allocate counted memory");
    out_bytes += bytes;
    ++allocations;
    return host_memory().allocate(bytes, alignment);
  }
  void deallocate(void* memory, std::size_t bytes, std::size_t alignment) noexcept override {
    out_bytes -= bytes;
    host_memory().deallocate(memory, bytes, alignment);
  }
  device where() const noexcept override { return where_; }
  std::string_view name() const noexcept override { return "counted memory"; }

  std::atomic<std::size_t> limit = ~std::size_t{0};
  std::atomic<std::size_t> out_bytes = 0;
  std::atomic<std::size_t> allocations = 0;

 private:
  device where_;
};

// As an allocator of C that reports no memory by null.
class null_resource final : public memory_resource {
 public:
  void* allocate(std::size_t, std::size_t) override { return nullptr; }
  void deallocate(void*, std::size_t, std::size_t) noexcept override { ADD_FAILURE(); }
  std::string_view name() const noexcept override { return "null memory"; }
};

TEST(MemoryResource, ThatReturnsNullIsNamedByTheError) {
  null_resource none;
  auto is_named = ThrowsMessage<error>(
      HasSubstr("bytes of null memory, which returned null: Cannot allocate memory"));
  EXPECT_THAT([&] { buffer(100, none); }, is_named);
  buffer_pool pool(buffer_pool::unlimited, none);
  EXPECT_THAT([&] { (void)pool.allocate_now(100); }, is_named);
  EXPECT_EQ(pool.stats().used_bytes, 0u);
  runtime runtime({.threads = 1, .memory = &none});
  auto allocate_in_stage = [](int) -> task<buffer> { co_return co_await allocate(3000); };
  auto items = runtime.run(from(std::vector{1}) | map(allocate_in_stage));
  EXPECT_THAT([&] { items.wait_next(); }, is_named);
}

TEST(MemoryResource, BuffersHaveTheDeviceOfTheirResource) {
  counting_resource pinned;
  buffer bytes(1000, pinned);
  EXPECT_EQ(bytes.where(), (device{device::kind::cuda_host, 0}));
  EXPECT_EQ(bytes.slice(10, 20).where(), bytes.where());
  EXPECT_EQ(tensor({element_type::u8, {1000}}, bytes).where(), bytes.where());
  EXPECT_EQ(buffer(10).where(), device());
  bytes = {};
  EXPECT_EQ(pinned.out_bytes, 0u);
}

TEST(MemoryResource, ThatIsSharedLivesAsLongAsItsBuffers) {
  auto shared = std::make_shared<counting_resource>();
  std::weak_ptr<counting_resource> watched = shared;
  buffer direct(100, *shared);
  auto pooled = buffer_pool(buffer_pool::unlimited, *shared).allocate_now(100);
  shared.reset();
  direct = {};
  EXPECT_FALSE(watched.expired());
  pooled = {};
  EXPECT_TRUE(watched.expired());
}

TEST(MemoryResource, DevicesHaveNames) {
  EXPECT_EQ(to_string(device()), "cpu");
  EXPECT_EQ(to_string(device{device::kind::cuda, 2}), "cuda:2");
  EXPECT_EQ(to_string(device{device::kind::cuda_host, 0}), "cuda_host");
  EXPECT_EQ(to_string(device{device::kind::cuda_managed, 1}), "cuda_managed:1");
}

TEST(BufferPool, OverAnotherResourceHasTheSameLimit) {
  counting_resource pinned;
  buffer_pool pool(1 << 20);
  auto other = pool.over(pinned);
  auto first = pool.try_allocate(600'000);
  EXPECT_FALSE(other.try_allocate(600'000));
  first.reset();
  auto second = other.try_allocate(600'000);
  ASSERT_TRUE(second);
  EXPECT_EQ(second->where().type, device::kind::cuda_host);
  EXPECT_FALSE(pool.try_allocate(600'000));
  EXPECT_EQ(pool.stats().used_bytes, other.stats().used_bytes);
}

TEST(BufferPool, KeepsBlocksOfEachResourceSeparately) {
  counting_resource pinned;
  buffer_pool pool;
  auto other = pool.over(pinned);
  auto* from_pinned = other.allocate_now(5000).data();
  auto* from_host = pool.allocate_now(5000).data();
  EXPECT_NE(from_pinned, from_host);
  EXPECT_EQ(pool.over(pinned).allocate_now(5000).data(), from_pinned);
  EXPECT_EQ(pinned.allocations, 1u);
}

TEST(BufferPool, FreesKeptBlocksOfOneResourceForAnother) {
  counting_resource pinned;
  buffer_pool pool(1 << 20);
  (void)pool.over(pinned).allocate_now(900'000);
  EXPECT_GT(pinned.out_bytes, 0u);
  auto held = pool.allocate_now(900'000);
  EXPECT_EQ(pinned.out_bytes, 0u);
}

TEST(BufferPool, ReturnsWhatItKeepsBeforeAResourceRefuses) {
  counting_resource small;
  small.limit = 10'000;
  buffer_pool pool(buffer_pool::unlimited, small);
  (void)pool.allocate_now(6000);
  EXPECT_GT(small.out_bytes, 0u);
  auto other = pool.allocate_now(8000);  // does not fit beside the kept one
  EXPECT_EQ(code_of([&] { (void)pool.allocate_now(8000); }), errc::limit_exceeded);
  EXPECT_EQ(pool.stats().used_bytes, 8192u);
}

TEST(HugePages, ReturnRegionsThatAreFree) {
  huge_page_memory huge;
  {
    buffer small(1000, huge);
    buffer large(std::size_t{40} << 20, huge);
    std::memset(large.data(), 1, large.size());
    std::memset(small.data(), 1, small.size());
    EXPECT_EQ(huge.stats().reserved_bytes, std::size_t{72} << 20);
    EXPECT_LE(huge.stats().fallback_bytes, huge.stats().reserved_bytes);
  }
  EXPECT_EQ(huge.stats().reserved_bytes, 0u);
  EXPECT_EQ(huge.stats().fallback_bytes, 0u);
  EXPECT_THAT([&] { huge.allocate(~std::size_t{0} / 2 + 10, 64); },
              ThrowsMessage<error>(HasSubstr("allocate")));
}

TEST(Arena, NeverAllocatesBeyondItsRegion) {
  buffer region(102'400);
  arena fixed(region, "the test's arena");
  {
    buffer part(60'000, fixed);
    EXPECT_GE(part.data(), region.data());
    EXPECT_LE(part.data() + part.size(), region.data() + region.size());
    EXPECT_THAT([&] { buffer(50'000, fixed); },
                ThrowsMessage<error>("allocate 50000 bytes of the test's arena: 42368 of 102400 "
                                     "bytes are free, 42368 in one piece"));
  }
  EXPECT_EQ(fixed.free_bytes(), 102'400u);
  EXPECT_EQ(buffer(102'400, fixed).where(), device());
}

TEST(Arena, HasTheDeviceOfItsRegion) {
  buffer memory(4096);
  arena fixed(buffer(nullptr, memory.bytes(), {device::kind::cuda_managed, 1}));
  EXPECT_EQ(fixed.where(), (device{device::kind::cuda_managed, 1}));
}

TEST(Arena, OfNothingIsRefused) {
  EXPECT_THAT([] { arena nothing{buffer()}; },
              ThrowsMessage<error>("make arena: the region is empty"));
}

static sample zeros(int number) { return sample("sample " + std::to_string(number)); }

static pipeline<sample> samples(int count) {
  std::vector<sample> all;
  for (int i = 0; i < count; ++i) all.push_back(zeros(i));
  return from(std::move(all));
}

// Writes the first bytes of a sample.
class first_bytes {
 public:
  tensor_spec spec() const { return {element_type::u8, {4}}; }
  void operator()(const sample&, const tensor& slot) const { std::memset(slot.bytes(), 7, 4); }
};

TEST(MemoryResource, OfARuntimeHoldsWhatRunsAllocate) {
  counting_resource pinned;
  runtime runtime({.threads = 1, .memory = &pinned});
  auto batches = samples(4) | batch_into(first_bytes(), {.size = 2});
  for (auto& batch : runtime.run(batches)) {
    EXPECT_EQ(batch.tensor().where().type, device::kind::cuda_host);
    EXPECT_EQ(batch.tensor().bytes()[7], std::byte{7});
  }
  EXPECT_GT(pinned.allocations, 0u);
}

TEST(MemoryResource, OfBatchesHoldsTheirTensorsWithinTheBudget) {
  counting_resource pinned;
  runtime runtime({.threads = 1});
  auto batches = samples(4) | batch_into(first_bytes(), {.size = 2, .memory = &pinned});
  std::vector<sample_batch> kept;
  for (auto& batch : runtime.run(batches)) kept.push_back(batch);
  ASSERT_EQ(kept.size(), 2u);
  EXPECT_EQ(kept[1].tensor().where().type, device::kind::cuda_host);
  EXPECT_EQ(runtime.memory().stats().used_bytes, 128u);
  EXPECT_EQ(runtime.memory().over(pinned).stats().used_bytes, 128u);
}

static buffer made_by_a_function(int) { return allocate_now(5000); }

static task<buffer> made_by_a_task(int) { co_return co_await allocate(5000); }

TEST(MemoryResource, OfAStageHoldsWhatItsFunctionAllocates) {
  counting_resource pinned;
  runtime runtime({.threads = 2});
  std::vector<int> numbers{1, 2, 3};
  auto check = [&](const pipeline<buffer>& buffers) {
    int seen = 0;
    for (auto& each : runtime.run(buffers)) {
      EXPECT_EQ(each.where().type, device::kind::cuda_host);
      ++seen;
    }
    EXPECT_EQ(seen, 3);
  };
  check(from(numbers) | map(made_by_a_function, {.concurrency = 2, .memory = &pinned}));
  check(from(numbers) | map(made_by_a_function, {.concurrency = 1, .memory = &pinned}));
  check(from(numbers) | map(made_by_a_task, {.concurrency = 2, .memory = &pinned}));
}

TEST(MemoryResource, OfAStageLivesAsLongAsItsPipeline) {
  const auto check = [&](auto make) {
    auto shared = std::make_shared<counting_resource>();
    const std::weak_ptr<memory_resource> left = shared;
    auto& allocations = shared->allocations;
    {
      const auto items = make(shared.get());
      shared.reset();
      ASSERT_FALSE(left.expired());
      runtime runtime({.threads = 2});
      for (auto& each : runtime.run(items)) (void)each;
      EXPECT_GT(allocations, 0u);
    }
    EXPECT_TRUE(left.expired());
  };
  check([](memory_resource* from) {
    return samples(4) | batch_into(first_bytes(), {.size = 2, .memory = from});
  });
  for (const unsigned concurrency : {1u, 2u})
    check([&](memory_resource* from_memory) {
      return from(std::vector{1, 2, 3}) |
             map(made_by_a_function, {.concurrency = concurrency, .memory = from_memory});
    });
}

TEST(MemoryResource, OfAStageIsNotThatOfTheStagesBefore) {
  counting_resource pinned;
  runtime runtime({.threads = 2});
  auto identity = [](buffer item) { return item; };
  auto buffers = from(std::vector{1, 2, 3}) | map(made_by_a_function, {.concurrency = 1}) |
                 map(identity, {.concurrency = 2, .memory = &pinned});
  for (auto& each : runtime.run(buffers)) EXPECT_EQ(each.where(), device());
  EXPECT_EQ(pinned.allocations, 0u);
}

TEST(MemoryResource, ThatTheCpuCannotWriteIsRefusedWhereItMust) {
  counting_resource gpu({device::kind::cuda, 1});
  auto says = [](std::string_view doing) {
    return ThrowsMessage<error>(std::string(doing) +
                                ": memory is counted memory (cuda:1); it must be memory that the "
                                "CPU can write");
  };
  EXPECT_THAT([&] { runtime({.threads = 1, .memory = &gpu}); }, says("make a runtime"));
  EXPECT_THAT([&] { batch_into(first_bytes(), {.size = 2, .memory = &gpu}); }, says("first_bytes"));
  EXPECT_THAT([&] { from(std::vector{1}) | map(made_by_a_function, {.memory = &gpu}); },
              says("map"));
}

}  // namespace lade::memory_resource_test
