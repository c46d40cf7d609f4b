#include <lade/async_generator.hpp>
#include <lade/background.hpp>
#include <lade/batch.hpp>
#include <lade/batch_by.hpp>
#include <lade/bucket.hpp>
#include <lade/buffer.hpp>
#include <lade/cache.hpp>
#include <lade/chain.hpp>
#include <lade/cut.hpp>
#include <lade/draw.hpp>
#include <lade/equal_steps.hpp>
#include <lade/event.hpp>
#include <lade/failure.hpp>
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
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stdexcept>
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
  // Waits until `made` items have been made and `alive` of them are alive.
  void wait_for(int made, int alive) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return made_ == made && count_ == alive; });
  }
  void wait_for_none(int made) { wait_for(made, 0); }

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

// Yields `count` items, or items without end if it is negative, and then none until the run is
// stopped.
template <class T>
static pipeline<T> items_of(T (*make)(living&), int count, living& all, event& never) {
  return from([make, count, &all, &never]() -> async_generator<T> {
    for (int i = 0; i != count; ++i) {
      auto made = make(all);
      co_yield made;
    }
    co_await never;
  });
}

// While the source blocks, and the consumer has dropped what it has taken, only `kept` items live.
template <class T, class Stage>
static void expect_dropped(const char* what, T (*make)(living&), const Stage& stage, int results,
                           int kept = 0) {
  SCOPED_TRACE(what);
  living all;
  event never;
  runtime where({.threads = 2});
  auto items = where.run(items_of(make, 2, all, never) | stage, {.ready = 1});
  for (int i = 0; i < results; ++i) items.wait_next();
  all.wait_for(2, kept);
}
template <class Stage>
static void expect_dropped(const char* what, const Stage& stage, int results = 2, int kept = 0) {
  expect_dropped(what, make_item, stage, results, kept);
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

// Fails at its second item.
static async_generator<counted_item> pass_first(async_generator<counted_item> in) {
  co_yield *co_await in.next();
  co_await in.next();
  throw std::runtime_error("no");
}

TEST(DroppedItems, NoCustomStageKeepsAnItemThatItHasSkipped) {
  const through_options skip{.on_error = on_error::skip};
  expect_dropped("through", through(pass_on, skip));
  expect_dropped("through that fails", through(pass_first, skip), 1);
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
  expect_dropped("cache that keeps one", cache({.items = 1}), 2, 1);
  expect_dropped("cache that is filling", cache({.items = 5}), 2, 2);
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

// Lists are read by index.
TEST(DroppedItems, NoSourceThatIsReadByIndexKeepsAnItemWhileItMakesTheNext) {
  auto expect = [](const char* what, const auto& stage) {
    SCOPED_TRACE(what);
    living all;
    std::atomic<int> made = 0;
    test::gate gate;
    runtime where({.threads = 2});
    auto make = [&](std::uint64_t) {
      if (++made == 3) gate.pass();
      return counted_item(all);
    };
    auto items = where.run(from_index(3, make) | stage, {.ready = 1});
    for (int i = 0; i < 2; ++i) items.wait_next();
    all.wait_for_none(2);
    gate.open();
  };
  expect("list", chain());
  expect("shuffle", shuffle({.seed = 7}));
  expect("draw", draw({.weights = {1, 2, 3}}));
}

static async_generator<counted_item> pass_on_both(async_generator<counted_item> first,
                                                  async_generator<counted_item> second) {
  for (int i = 0; i < 2; ++i) co_yield *co_await first.next();
  while (auto* item = co_await second.next()) co_yield *item;
}

// Fails when it has yielded an item of each and taken another.
static async_generator<counted_item> fail_once(async_generator<counted_item> first,
                                               async_generator<counted_item> second) {
  co_yield *co_await first.next();
  co_yield *co_await second.next();
  co_await first.next();
  throw std::runtime_error("no");
}

template <class Join>
static void expect_inputs_dropped(const Join& join, int results, int made = 4) {
  living all;
  event never;
  runtime where({.threads = 2});
  auto source = items_of(make_item, 2, all, never);
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
  const through_options skip{.on_error = on_error::skip};
  auto failing = [&](const items& a, const items& b) { return combine(fail_once, skip, a, b); };
  expect_inputs_dropped(failing, 2, 3);
}

// Takes no item.
template <class T>
static async_generator<int> take_none(async_generator<T>, event* never) {
  co_await *never;
}

// Waits until `full`, takes one item and drops it.
template <class T>
static async_generator<int> take_one(async_generator<T> in, event* full, event* never) {
  co_await *full;
  {
    T* next = co_await in.next().apart();
    [[maybe_unused]] T taken(std::move(*next));
  }
  co_await *never;
}

template <class T>
static auto nothing_of(const pipeline<T>& items, event& never) {
  return items | through(take_none<T>, {}, &never);
}

// The stage makes numbers that nothing takes. It takes `taken` items until it is full, and keeps
// none.
template <class T, class Stage>
static void expect_dropped_when_full(const char* what, T (*make)(living&), const Stage& stage,
                                     int taken) {
  SCOPED_TRACE(what);
  living all;
  event never;
  runtime where({.threads = 2});
  auto results = items_of(make, -1, all, never) | stage;
  auto items = where.run(nothing_of(results, never), {.ready = 1});
  all.wait_for_none(taken);
}

// Makes a number of each item.
struct counting {
  std::optional<int> add(const counted_item&) { return 1; }
  std::optional<int> flush() { return std::nullopt; }
};

TEST(DroppedItems, NoStageThatIsFullKeepsAnItemThatItHasUsed) {
  auto number = [](const counted_item&) { return 1; };
  auto number_later = [](counted_item) -> task<int> { co_return 1; };
  auto numbers = [](const counted_item&) { return std::vector{1}; };
  auto expect = [](const char* what, const auto& stage, int taken) {
    expect_dropped_when_full(what, make_item, stage, taken);
  };
  expect("map inline", chain(map(number, {.concurrency = 1}), prefetch(1)), 1);
  expect("map", map(number, {.concurrency = 2, .buffer = 2}), 4);
  expect("map of tasks", map(number_later, {.concurrency = 2, .buffer = 2}), 4);
  expect("flat_map", flat_map(numbers, {.concurrency = 2}), 3);
  expect("batch_by", chain(batch_by(counting()), prefetch(1)), 1);
}

TEST(DroppedItems, NoStageThatIsFullKeepsAnItemThatItHasCopied) {
  auto expect = [](const char* what, auto make, const auto& stage, int taken) {
    expect_dropped_when_full(what, make, stage, taken);
  };
  expect("pad", make_tensor, chain(batch(1), pad()), 2);
  expect("pad of samples", make_sample, chain(batch(1), pad({.fields = "x"})), 2);
  expect("pack", make_tensor, chain(batch(1), pack()), 2);
  expect("pack_rows", make_tensor, chain(pack_rows({.length = 2}), prefetch(1)), 1);
  expect("stack", make_sample, chain(batch(1), stack({.fields = "x"})), 2);
  const batch_into_options options{.size = 2, .fields = "x", .concurrency = 1};
  expect("batch_into", make_sample, batch_into(copy_data(), options), 3);
}

// The stage fills its queues with `made` items. When one has been taken, it does not keep that one.
template <class Attach>
static void expect_taken_dropped(const char* what, const Attach& attach, int made) {
  SCOPED_TRACE(what);
  living all;
  event full;
  event never;
  runtime where({.threads = 2});
  auto behind = attach(items_of(make_item, -1, all, never));
  using item = typename decltype(behind)::value_type;
  auto items = where.run(behind | through(take_one<item>, {}, &full, &never), {.ready = 1});
  all.wait_for(made, made);
  full.set();
  all.wait_for(made, made - 1);
}

TEST(DroppedItems, NoQueueThatIsFullKeepsAnItemThatWasTaken) {
  using items = pipeline<counted_item>;
  auto number = map([](const counted_item&) { return 1; }, {.concurrency = 1});
  expect_taken_dropped("prefetch", [](const items& in) { return in | prefetch(4); }, 4);
  expect_taken_dropped("before map", [&](const items& in) { return in | prefetch(4) | number; }, 4);
  auto merged = [](const items& in) {
    return merge<counted_item>({in, in}, {.order = merge_order::arrival});
  };
  expect_taken_dropped("merge", merged, 6);
}

// The paths make a number of each item, when `made` items have been made. They keep none that they
// have used; `waiting` items wait before them.
template <class Attach>
static void expect_dropped_by_paths(const char* what, const Attach& attach, int made, int waiting) {
  SCOPED_TRACE(what);
  living all;
  event never;
  test::gate gate;
  runtime where({.threads = 4});
  auto number = map(
      [&gate](const counted_item&) {
        gate.pass();
        return 1;
      },
      {.concurrency = 1});
  auto results = items_of(make_item, made, all, never) | attach(number);
  auto items = where.run(nothing_of(results, never), {.ready = 1});
  all.wait_for(made, made);
  gate.open();
  all.wait_for(made, waiting);
}

TEST(DroppedItems, NoPathThatIsFullKeepsAnItemThatItHasUsed) {
  auto first = [](const counted_item&) { return 0; };
  auto teed = [](const auto& path) { return tee({.buffer = 2}, path, path); };
  auto routed = [&](const auto& path) { return route(first, {.buffer = 2}, path); };
  expect_dropped_by_paths("tee", teed, 3, 0);
  expect_dropped_by_paths("route", routed, 4, 1);
}

// The next batch is taken when the one before has been delivered.
TEST(DroppedItems, NoBatchKeepsItemsThatItsRouterHasDropped) {
  auto none = [](const counted_item&) -> int { throw std::runtime_error("no"); };
  const route_options options{.buffer = 1, .on_error = on_error::skip};
  auto routed = chain(batch(2), route_batches(none, options, chain()));
  expect_dropped_when_full("route_batches", make_item, routed, 2);
}

}  // namespace lade::dropped_items_test
