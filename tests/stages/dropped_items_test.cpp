#include <lade/async_generator.hpp>
#include <lade/background.hpp>
#include <lade/batch.hpp>
#include <lade/batch_by.hpp>
#include <lade/bucket.hpp>
#include <lade/buffer.hpp>
#include <lade/cache.hpp>
#include <lade/chain.hpp>
#include <lade/cut.hpp>
#include <lade/equal_steps.hpp>
#include <lade/event.hpp>
#include <lade/field.hpp>
#include <lade/filter.hpp>
#include <lade/flat_map.hpp>
#include <lade/from.hpp>
#include <lade/from_shards.hpp>
#include <lade/map.hpp>
#include <lade/merge.hpp>
#include <lade/pad.hpp>
#include <lade/route.hpp>
#include <lade/route_batches.hpp>
#include <lade/run.hpp>
#include <lade/runtime.hpp>
#include <lade/sample.hpp>
#include <lade/shard.hpp>
#include <lade/shuffle.hpp>
#include <lade/stack.hpp>
#include <lade/task.hpp>
#include <lade/tee.hpp>
#include <lade/tensor.hpp>
#include <lade/through.hpp>
#include <lade/window.hpp>

#include "../support/pipelines.hpp"

#include <gtest/gtest.h>

#include <array>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace lade::dropped_items_test {

// Counts the items that live.
class living {
 public:
  void add(int change) {
    {
      std::lock_guard lock(mutex_);
      count_ += change;
      if (change > 0) made_ += change;
    }
    changed_.notify_all();
  }
  // Waits until `made` items have been made and none is alive.
  void wait_for_none(int made) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return made_ == made && count_ == 0; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int count_ = 0;
  int made_ = 0;
};

// An item that is alive until its last copy is destroyed.
class counted_item {
 public:
  explicit counted_item(living& all) : alive_(std::make_shared<life>(all)) {}

 private:
  struct life {
    explicit life(living& counted) : all(counted) { all.add(1); }
    life(const life&) = delete;
    ~life() { all.add(-1); }
    living& all;
  };

  std::shared_ptr<life> alive_;
};

static counted_item make_item(living& all) { return counted_item(all); }

// Two i32 in memory that is an item.
static tensor make_tensor(living& all) {
  struct item_memory {
    explicit item_memory(living& counted) : item(counted) {}
    counted_item item;
    std::array<std::int32_t, 2> numbers{};
  };
  auto memory = std::make_shared<item_memory>(all);
  auto bytes = std::as_writable_bytes(std::span(memory->numbers));
  return {tensor_spec{element_type::i32, {2}}, buffer(std::move(memory), bytes)};
}

// A sample with such a tensor as its data and as its field "x".
static sample make_sample(living& all) {
  auto x = make_tensor(all);
  return sample("a").with_data(x.memory()).with_field(field("x", x));
}

// Two items, and then none until the run is stopped.
template <class T>
static pipeline<T> two_items(T (*make)(living&), living& all, event& never) {
  return from([make, &all, &never]() -> async_generator<T> {
    for (int i = 0; i < 2; ++i) {
      auto made = make(all);
      co_yield made;
    }
    co_await never;
  });
}

// While the source blocks, and the consumer has dropped what it has taken, no stage keeps an item.
template <class T, class Stage>
static void expect_dropped(const char* what, T (*make)(living&), const Stage& stage, int results) {
  SCOPED_TRACE(what);
  living all;
  event never;
  runtime where({.threads = 2});
  auto items = where.run(two_items(make, all, never) | stage, {.ready = 1});
  for (int i = 0; i < results; ++i) items.wait_next();
  all.wait_for_none(2);
}
template <class Stage>
static void expect_dropped(const char* what, const Stage& stage, int results = 2) {
  expect_dropped(what, make_item, stage, results);
}

static async_generator<counted_item> pass_on(async_generator<counted_item> in) {
  while (auto* item = co_await in.next()) co_yield *item;
}

TEST(DroppedItems, NoStageKeepsAnItemWhileItWaitsForTheNext) {
  auto same = [](const counted_item& item) { return item; };
  auto later = [](counted_item item) -> task<counted_item> { co_return item; };
  auto once = [](const counted_item& item) { return std::vector{item}; };
  auto all_of = [](const counted_item&) { return true; };
  auto first = [](const counted_item&) { return 0; };
  expect_dropped("map inline", map(same, {.concurrency = 1}));
  expect_dropped("map", map(same, {.concurrency = 2}));
  expect_dropped("map of tasks", map(later, {.concurrency = 2}));
  expect_dropped("map with retries", map(same, {.concurrency = 2, .retry = {.attempts = 3}}));
  expect_dropped("filter", filter(all_of));
  expect_dropped("prefetch", prefetch(3));
  expect_dropped("flat_map", flat_map(once));
  expect_dropped("wide flat_map", flat_map(once, {.concurrency = 2}));
  expect_dropped("flat_map as they come",
                 flat_map(once, {.concurrency = 2, .order = item_order::completion}));
  expect_dropped("batch", batch(1));
  expect_dropped("batch of two", batch(2), 1);
  expect_dropped("unbatch", chain(batch(2), unbatch()));
  expect_dropped("take", chain(map(same), take(5)));
  expect_dropped("through", through(pass_on));
  expect_dropped("route", route(first, map(same, {.concurrency = 2}), chain()));
  expect_dropped("tee", tee(map(same, {.concurrency = 2}), chain()));
}

// Batches of one item.
struct single_items {
  using items = std::vector<counted_item>;

  std::optional<items> add(counted_item item) {
    items one;
    one.push_back(std::move(item));
    return one;
  }
  std::optional<items> flush() { return std::nullopt; }
};

TEST(DroppedItems, NoStageThatOrdersOrGroupsKeepsAnItemWhileItWaitsForTheNext) {
  auto same = map([](const counted_item& item) { return item; });
  auto first = [](const counted_item&) { return 0; };
  auto all_first = [](const std::vector<counted_item>& batch) {
    return std::vector<std::size_t>(batch.size());
  };
  auto none_ended = [](bool) { return false; };
  expect_dropped("skip", chain(same, skip(0)));
  expect_dropped("repeat", chain(same, repeat(2)));
  expect_dropped("shard", chain(same, shard({.rank = 0, .world = 1})));
  expect_dropped("shuffle", chain(same, shuffle({.window = 1})));
  expect_dropped("window", window(1));
  expect_dropped("bucket", bucket(first, {.size = 1}));
  expect_dropped("batch_by", batch_by(single_items()));
  expect_dropped("route_batches",
                 chain(batch(1), route_batches(all_first, map(std::identity()), chain())));
  expect_dropped("equal_steps", equal_steps({.steps = 5}));
  expect_dropped("end_together", end_together(none_ended));
  expect_dropped("cache that is full", cache({.items = 0}));
  expect_dropped("background", background([]() -> task<> { co_return; }));
}

// Copies the data of a sample.
struct copy_data {
  tensor_spec spec() const { return {element_type::i32, {2}}; }
  void operator()(const sample& in, const tensor& slot) const {
    std::memcpy(slot.bytes(), in.data().data(), in.data().size());
  }
};

TEST(DroppedItems, NoStageThatCopiesItemsIntoTensorsKeepsAnItemWhileItWaitsForTheNext) {
  expect_dropped("pad", make_tensor, chain(batch(1), pad()), 2);
  expect_dropped("pad of samples", make_sample, chain(batch(1), pad({.fields = "x"})), 2);
  expect_dropped("pack", make_tensor, chain(batch(1), pack()), 2);
  expect_dropped("pack_rows", make_tensor, pack_rows({.length = 2}), 2);
  expect_dropped("pack_rows before a row is full", make_tensor, pack_rows({.length = 8}), 0);
  expect_dropped("stack", make_sample, chain(batch(1), stack({.fields = "x"})), 2);
  for (unsigned concurrency : {1u, 2u}) {
    const batch_into_options options{.size = 1, .fields = "x", .concurrency = concurrency};
    expect_dropped("batch_into", make_sample, batch_into(copy_data(), options), 2);
    auto larger = options;
    larger.size = 4;
    expect_dropped("batch_into before a batch is full", make_sample,
                   batch_into(copy_data(), larger), 0);
  }
}

// The first shard has two items. The second has none until the run is stopped.
class two_shards {
 public:
  two_shards(living& all, event& never) : all_(all), never_(never) {}
  std::uint64_t size() const { return 2; }
  std::string name(std::uint64_t i) const { return std::to_string(i); }
  std::string identity() const { return "two shards"; }
  async_generator<counted_item> read(std::uint64_t i) const {
    for (int item = 0; i == 0 && item < 2; ++item) {
      counted_item made(all_);
      co_yield made;
    }
    if (i == 1) co_await never_;
  }

 private:
  living& all_;
  event& never_;
};

TEST(DroppedItems, NoSourceOfShardsKeepsItemsOfAShardWhileItWaitsForTheNext) {
  for (unsigned concurrency : {1u, 2u}) {
    living all;
    event never;
    runtime where({.threads = 2});
    auto shards = from_shards(two_shards(all, never), {.concurrency = concurrency});
    auto items = where.run(shards, {.ready = 1});
    for (int i = 0; i < 2; ++i) items.wait_next();
    all.wait_for_none(2);
  }
}

// Items that wait before a path when it ends are not kept until the run ends.
TEST(DroppedItems, NoPathThatHasEndedKeepsItems) {
  living all;
  event never;
  runtime where({.threads = 2});
  test::gate gate;
  auto first = [](const counted_item&) { return 0; };
  auto source = from([&all, &never, &gate]() -> async_generator<counted_item> {
    for (int i = 0; i < 5; ++i) {
      counted_item made(all);
      co_yield made;
    }
    gate.open();
    co_await never;
  });
  auto hold = map(
      [&gate](const counted_item& item) {
        gate.pass();
        return item;
      },
      {.concurrency = 1});
  auto items = where.run(source | route(first, chain(hold, take(1)), chain()), {.ready = 1});
  EXPECT_TRUE(items.wait_next().has_value());
  all.wait_for_none(5);
}

static async_generator<counted_item> pass_on_both(async_generator<counted_item> first,
                                                  async_generator<counted_item> second) {
  for (int i = 0; i < 2; ++i) co_yield *co_await first.next();
  while (auto* item = co_await second.next()) co_yield *item;
}

template <class Join>
static void expect_inputs_dropped(const Join& join, int results, int made = 4) {
  living all;
  event never;
  runtime where({.threads = 2});
  auto source = two_items(make_item, all, never);
  auto items = where.run(join(source, source), {.ready = 1});
  for (int i = 0; i < results; ++i) items.wait_next();
  all.wait_for_none(made);
}

TEST(DroppedItems, NoMergeKeepsAnItemWhileItWaitsForTheNext) {
  using items = pipeline<counted_item>;
  for (auto order : {merge_order::turns, merge_order::arrival}) {
    auto merged = [order](const items& a, const items& b) {
      return merge<counted_item>({a, b}, {.order = order});
    };
    expect_inputs_dropped(merged, 4);
  }
  auto only_first = [](const items& a, const items& b) {
    return merge<counted_item>({a, b}, {.order = merge_order::weighted, .weights = {1, 0}});
  };
  expect_inputs_dropped(only_first, 2, 2);
  expect_inputs_dropped([](const items& a, const items& b) { return zip(a, b); }, 2);
  expect_inputs_dropped([](const items& a, const items& b) { return combine(pass_on_both, a, b); },
                        4);
}

}  // namespace lade::dropped_items_test
