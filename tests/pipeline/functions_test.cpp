// What stages do with the functions they are given: they keep one, which no run copies.

#include <lade/batch.hpp>
#include <lade/bucket.hpp>
#include <lade/chain.hpp>
#include <lade/detail/pipeline/items.hpp>
#include <lade/filter.hpp>
#include <lade/flat_map.hpp>
#include <lade/from.hpp>
#include <lade/map.hpp>
#include <lade/merge.hpp>
#include <lade/per_worker.hpp>
#include <lade/route.hpp>
#include <lade/route_batches.hpp>
#include <lade/run.hpp>
#include <lade/through.hpp>

#include "../support/live_allocations.hpp"
#include "../support/pipelines.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace lade::functions_test {

using namespace test;
using testing::ElementsAre;
using testing::SizeIs;

// A look-up table that cannot be copied.
class lookup_table {
 public:
  explicit lookup_table(int added) : added_(std::make_unique<int>(added)) {}
  int operator[](int i) const { return i + *added_; }

 private:
  std::unique_ptr<int> added_;
};

// Counts how often it is copied.
class copy_counter {
 public:
  explicit copy_counter(int& copies) : copies_(copies) {}
  copy_counter(copy_counter&&) = default;
  copy_counter(const copy_counter& other) : copies_(other.copies_) { ++copies_; }

  int operator()(int i) const { return i; }

 private:
  int& copies_;
};

TEST(Functions, AreNotCopiedByRuns) {
  runtime runtime({.threads = 1});
  int copies = 0;
  for (unsigned concurrency : {1u, 2u}) {
    auto items =
        from(numbers{3}) | map(copy_counter(copies), {.concurrency = concurrency}) |
        filter(copy_counter(copies), {.concurrency = concurrency}) |
        flat_map([counter = copy_counter(copies)](int i) { return std::vector{counter(i)}; },
                 {.concurrency = concurrency});
    for (int epoch = 0; epoch < 2; ++epoch) EXPECT_THAT(collect(runtime, items), ElementsAre(1, 2));
    EXPECT_EQ(copies, 0);
  }
}

TEST(Functions, NeedNotBeCopied) {
  runtime runtime({.threads = 1});
  for (unsigned concurrency : {1u, 2u}) {
    auto add = [ten = lookup_table(10)](int i) { return ten[i]; };
    auto is_even = [zero = lookup_table(0)](int i) { return zero[i] % 2 == 0; };
    auto both = [one = lookup_table(1)](int i) { return std::vector{i, one[i]}; };
    auto items = from(numbers{3}) | map(std::move(add), {.concurrency = concurrency}) |
                 filter(std::move(is_even), {.concurrency = concurrency}) |
                 flat_map(std::move(both), {.concurrency = concurrency});
    for (int epoch = 0; epoch < 2; ++epoch)
      EXPECT_THAT(collect(runtime, items), ElementsAre(10, 11, 12, 13));
  }
}

static task<int> look_up(const lookup_table& in, int i) { co_return in[i]; }

TEST(Functions, ThatReturnTasksNeedNotBeCopied) {
  runtime runtime({.threads = 1});
  auto add = [ten = lookup_table(10)](int i) { return look_up(ten, i); };
  auto items = from(numbers{2}) | map(std::move(add));
  EXPECT_THAT(collect(runtime, items), ElementsAre(10, 11));
  EXPECT_THAT(collect(runtime, items), ElementsAre(10, 11));
}

static async_generator<int> each(const lookup_table& in, int count) {
  for (int i = 0; i < count; ++i) co_yield in[i];
}

static async_generator<int> add_to_each(const lookup_table& added, async_generator<int> in) {
  while (auto* item = co_await in.next()) co_yield added[*item];
}

TEST(Functions, OfSourcesAndCustomStagesNeedNotBeCopied) {
  runtime runtime({.threads = 1});
  auto generate = [ten = lookup_table(10)] { return each(ten, 2); };
  auto list = [ten = lookup_table(10)] { return std::vector{ten[0], ten[1]}; };
  auto ended = [at = std::make_unique<std::atomic<int>>(10)]() -> std::optional<int> {
    if (*at == 12) return std::nullopt;
    return (*at)++;
  };
  auto add = [one = lookup_table(1)](async_generator<int> in) {
    return add_to_each(one, std::move(in));
  };
  pipeline<int> sources[] = {from(std::move(generate)), from(std::move(list)),
                             from(std::move(ended))};
  auto stage = through(std::move(add));
  for (auto& source : sources) EXPECT_THAT(collect(runtime, source | stage), ElementsAre(11, 12));
}

TEST(Functions, ThatChoosePathsOrBatchesNeedNotBeCopied) {
  runtime runtime({.threads = 1});
  auto parity = [zero = lookup_table(0)](int i) { return zero[i] % 2; };
  auto length = [zero = lookup_table(0)](int i) { return zero[i]; };
  auto negate = map([](int i) { return -i; });
  auto batches = from(numbers{4}) | route(std::move(parity), chain(), negate) |
                 bucket(std::move(length), {.size = 2, .on_error = on_error::skip});
  for (int epoch = 0; epoch < 2; ++epoch)
    EXPECT_THAT(collect(runtime, batches), ElementsAre(ElementsAre(0, 2))) << "none below 0";
}

TEST(Functions, ThatChoosePathsOfPartsOfBatchesNeedNotBeCopied) {
  runtime runtime({.threads = 1});
  auto parity = [zero = lookup_table(0)](int i) { return zero[i] % 2; };
  auto batches = from(numbers{4}) | batch(4) | route_batches(std::move(parity), chain(), chain());
  for (int epoch = 0; epoch < 2; ++epoch)
    EXPECT_THAT(collect(runtime, batches), ElementsAre(ElementsAre(0, 2, 1, 3)));
}

TEST(Functions, ThatCombineStreamsNeedNotBeCopied) {
  runtime runtime({.threads = 1});
  auto add = [one = lookup_table(1)](async_generator<int> in) {
    return add_to_each(one, std::move(in));
  };
  auto items = combine(std::move(add), from(numbers{2}));
  for (int epoch = 0; epoch < 2; ++epoch) EXPECT_THAT(collect(runtime, items), ElementsAre(1, 2));
}

TEST(Functions, OfSourcesThatAreReachedByIndexNeedNotBeCopied) {
  runtime runtime({.threads = 1});
  auto item = [ten = lookup_table(10)](std::uint64_t i) { return ten[static_cast<int>(i)]; };
  auto items = from_index(2, std::move(item));
  for (int epoch = 0; epoch < 2; ++epoch) EXPECT_THAT(collect(runtime, items), ElementsAre(10, 11));
}

TEST(Functions, ThatAreMadeForEachWorkerNeedNotBeCopied) {
  runtime runtime({.threads = 1});
  for (unsigned concurrency : {1u, 2u}) {
    auto make = [ten = lookup_table(10)] {
      return [mine = lookup_table(ten[0])](int i) { return mine[i]; };
    };
    auto items = from(numbers{2}) | map(per_worker(std::move(make)), {.concurrency = concurrency});
    for (int epoch = 0; epoch < 2; ++epoch)
      EXPECT_THAT(collect(runtime, items), ElementsAre(10, 11));
  }
}

// Writes the sum of a sample's label and what it has.
class label_writer {
 public:
  explicit label_writer(int added) : table_(added) {}
  tensor_spec spec() const { return {.type = element_type::i32, .shape = {1}}; }
  void operator()(const sample& in, const tensor& slot) const {
    *slot.data<std::int32_t>() = table_[static_cast<int>(in.label())];
  }

 private:
  lookup_table table_;
};

// A sample-like item: what it is called costs no allocation.
class named {
 public:
  explicit named(std::size_t length)
      : key_(std::make_shared<const std::string>(std::string(length, 'k'))) {}
  const std::string& key() const noexcept { return *key_; }

 private:
  std::shared_ptr<const std::string> key_;
};

TEST(Functions, OfBatchIntoNeedNotBeCopied) {
  runtime runtime({.threads = 1});
  auto samples = from(numbers{2}) | map([](int i) { return sample("key", i); }) |
                 batch_into(label_writer(10), {.size = 2});
  for (int epoch = 0; epoch < 2; ++epoch) {
    auto batches = collect(runtime, samples);
    ASSERT_THAT(batches, SizeIs(1));
    EXPECT_EQ(batches[0].tensor().data<std::int32_t>()[1], 11);
  }
}

// How many allocations a run makes whose items have keys of that length.
static std::uint64_t allocations_of_run(runtime& where, std::size_t key_length,
                                        unsigned concurrency) {
  auto keep = [](named item) { return item; };
  auto is_named = [](const named& item) { return !item.key().empty(); };
  auto items = from(std::vector(2000, named(key_length))) |
               map(keep, {.concurrency = concurrency}) |
               filter(is_named, {.concurrency = concurrency});
  auto before = allocations_made();
  EXPECT_THAT(collect(where, items), SizeIs(2000));
  return allocations_made() - before;
}

// One for each item and stage would be 4000 more; statistics keep the names of the slowest items.
TEST(Functions, KeysOfItemsAreNotAllocatedWhereNothingFails) {
  runtime runtime({.threads = 1});
  for (unsigned concurrency : {1u, 2u}) {
    allocations_of_run(runtime, 1, concurrency);
    auto of_short_keys = allocations_of_run(runtime, 1, concurrency);
    EXPECT_LT(allocations_of_run(runtime, 100, concurrency), of_short_keys + 1000);
  }
}

static std::string local_name(int, char**) {
  struct decode {
    int operator()(int i) const { return i; }
  };
  return detail::stage_name<decode>({}, "map");
}

// The name of a stage for the part of a __PRETTY_FUNCTION__ that names its function.
static std::string name(const std::string& of) {
  return detail::short_type_name("std::string stage_name(text, text) [" + of + "]", "map");
}

TEST(Functions, NameTheirStagesWithoutTheFunctionsAroundTheirClass) {
  EXPECT_EQ(local_name(0, nullptr), "decode");
  EXPECT_EQ(name("with F = media::decode; text = std::string_view"), "decode");
  EXPECT_EQ(name("with F = {anonymous}::decode; text = std::string_view"), "decode");
  EXPECT_EQ(name("with F = train(std::vector<int>, char**)::decode<float>; text = t"), "decode");
  EXPECT_EQ(name("with F = main()::<lambda(int)>::decode; text = t"), "decode");
  EXPECT_EQ(name("F = (anonymous namespace)::decode, T = int"), "decode");
  EXPECT_EQ(name("F = decode"), "decode");
}

TEST(Functions, ThatHaveNoNameNameNoStage) {
  EXPECT_EQ(name("with F = main(int, char**)::<lambda(int)>; text = std::string_view"), "map");
  EXPECT_EQ(name("with F = lade::per_worker<main()::<lambda()> >; text = t"), "map");
  EXPECT_EQ(name("F = (lambda at train.cpp:3:7)"), "map");
  EXPECT_EQ(name("with F = std::function<int(int)>; text = t"), "map");
  EXPECT_EQ(detail::short_type_name("a text of another compiler", "map"), "map");
}

}  // namespace lade::functions_test
