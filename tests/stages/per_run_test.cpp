#include <lade/batch.hpp>
#include <lade/error.hpp>
#include <lade/from.hpp>
#include <lade/map.hpp>
#include <lade/memory_resource.hpp>
#include <lade/per_run.hpp>
#include <lade/per_worker.hpp>
#include <lade/random.hpp>
#include <lade/sample.hpp>
#include <lade/sample_batch.hpp>
#include <lade/tensor.hpp>
#include <lade/this_context.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../support/pipelines.hpp"

namespace lade::per_run_test {

using test::collect;
using test::numbers;
using test::up_to;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

// Counts the functions that live, and those that have ever been made.
class lives {
 public:
  class one {
   public:
    explicit one(lives& of) : of_(&of) {
      ++of.made;
      ++of.now;
    }
    one(one&& other) noexcept : of_(std::exchange(other.of_, nullptr)) {}
    ~one() {
      if (of_) --of_->now;
    }

   private:
    lives* of_;
  };

  std::atomic<int> made = 0;
  std::atomic<int> now = 0;
};

class plus_epoch {
 public:
  plus_epoch(const stage_run& run, lives& counted)
      : epoch_(static_cast<int>(run.epoch())), life_(counted) {}
  int operator()(int item) const { return item + 100 * epoch_; }

 private:
  int epoch_;
  lives::one life_;
};

static auto adding_epochs(lives& counted, const map_options& options) {
  auto make = [&counted](const stage_run& run) { return plus_epoch(run, counted); };
  return from(numbers{3}) | map(per_run(make), options);
}

TEST(PerRun, EveryRunMakesAFunctionAndDestroysItBeforeItEnds) {
  for (auto concurrency : {1u, 4u}) {
    lives counted;
    auto items = adding_epochs(counted, {.concurrency = concurrency});
    EXPECT_EQ(counted.made, 0);
    runtime where;
    EXPECT_THAT(collect(where, items, {.epoch = 1}), ElementsAre(100, 101, 102));
    EXPECT_THAT(collect(where, items, {.epoch = 2}), ElementsAre(200, 201, 202));
    EXPECT_EQ(counted.made, 2);
    EXPECT_EQ(counted.now, 0);
  }
}

TEST(PerRun, ConcurrentRunsHaveSeparateFunctions) {
  lives counted;
  auto items = adding_epochs(counted, {.concurrency = 2});
  runtime where;
  auto first = where.run(items, {.epoch = 1});
  auto second = where.run(items, {.epoch = 2});
  EXPECT_EQ(first.wait_next(), 100);
  EXPECT_EQ(second.wait_next(), 200);
  EXPECT_EQ(counted.made, 2);
}

TEST(PerRun, TheFunctionKnowsItsRunAndItsStage) {
  auto make = [](const stage_run& run) {
    return [run](int item) {
      return run.stage() + " " + std::to_string(run.seed() + static_cast<std::uint64_t>(item));
    };
  };
  auto stage = map(per_run(make), {.concurrency = 2, .name = "name"});
  auto other = map([](int item) { return item; }, {.name = "name"});
  runtime where;
  EXPECT_THAT(collect(where, from(numbers{2}) | other | stage, {.seed = 40}),
              ElementsAre("name (2) 40", "name (2) 41"));
}

TEST(PerRun, AFunctionOfTasksRunsOnTheReactor) {
  auto make = [](const stage_run& run) {
    return [where = &run.runtime()](int item) -> task<int> {
      auto here = co_await this_context();
      co_return here.runtime == where ? item : -1;
    };
  };
  runtime where;
  EXPECT_EQ(collect(where, from(numbers{5}) | map(per_run(make), {.concurrency = 3})), up_to(5));
}

TEST(PerRun, EveryWorkerMayHaveAnInstanceOfTheFunctionOfTheRun) {
  lives runs, workers;
  auto make = [&](const stage_run&) {
    auto shared = std::make_shared<lives::one>(runs);
    return per_worker([&workers, shared] {
      return [life = lives::one(workers), shared](int item) { return item; };
    });
  };
  runtime where({.threads = 2});
  auto items = from(numbers{100}) | map(per_run(make), {.concurrency = 2});
  EXPECT_EQ(collect(where, items), up_to(100));
  EXPECT_EQ(runs.made, 1);
  EXPECT_GE(workers.made, 1);
  EXPECT_LE(workers.made, 2);
  EXPECT_EQ(runs.now + workers.now, 0);
}

TEST(PerRun, AFunctionMayFilterAndMakeSeveralItemsOfOne) {
  runtime runtime({.threads = 2});
  auto odd = [](const stage_run&) {
    return [](int i) { return i % 2 ? std::optional(i) : std::nullopt; };
  };
  auto twice = [](const stage_run&) { return [](int i) { return std::vector{i, i}; }; };
  auto items = from(up_to(5)) | map(per_run(odd)) | map(per_run(twice)) | unbatch();
  EXPECT_THAT(collect(runtime, items), ElementsAre(1, 1, 3, 3));
}

TEST(PerRun, RandomNumbersAreThoseOfAFunctionThatAllRunsShare) {
  auto draw = [](int item, random numbers) { return item + static_cast<int>(numbers.below(1000)); };
  auto make = [draw](const stage_run&) { return draw; };
  runtime where;
  for (auto concurrency : {1u, 3u}) {
    const map_options options{.concurrency = concurrency, .name = "draw"};
    EXPECT_EQ(collect(where, from(numbers{20}) | map(per_run(make), options), {.epoch = 3}),
              collect(where, from(numbers{20}) | map(draw, options), {.epoch = 3}));
  }
}

TEST(PerRun, WhatMakeThrowsEndsTheRunAndNamesTheStage) {
  auto make = [](const stage_run&) -> std::plus<int> { throw std::runtime_error("no model"); };
  auto call = [make](const stage_run& run) {
    return [add = make(run)](int item) { return add(item, 1); };
  };
  runtime where;
  for (auto concurrency : {1u, 4u}) {
    auto items =
        from(numbers{3}) | map(per_run(call), {.concurrency = concurrency, .name = "load"});
    EXPECT_THAT([&] { collect(where, items); },
                ThrowsMessage<stage_error>(AllOf(HasSubstr("load"), HasSubstr("no model"))));
  }
}

TEST(PerRun, AWarningIsReportedToTheRun) {
  std::vector<std::string> warnings;
  auto make = [](const stage_run& run) {
    run.warn("slow");
    return [](int item) { return item; };
  };
  runtime where;
  collect(where, from(numbers{1}) | map(per_run(make)),
          {.on_warning = [&](std::string_view text) { warnings.emplace_back(text); }});
  EXPECT_THAT(warnings, ElementsAre("slow"));
}

// A stage that is a class.
class doubled {
 public:
  explicit doubled(on_error policy = on_error::fail) : policy_(policy) {}

  template <class In>
  auto attach(const pipeline<In>& in) const {
    auto begin = [](const stage_run&) {
      return [](int item) {
        if (item == 2) throw std::runtime_error("two");
        return 2 * item;
      };
    };
    return in | map(per_run(begin),
                    {.concurrency = 3, .on_error = policy_, .name = "doubled", .kind = "twice"});
  }

 private:
  on_error policy_;
};

TEST(PerRun, AStageThatIsAClassHasKindNameStatisticsAndPolicy) {
  auto items = from(numbers{4}) | doubled(on_error::skip);
  EXPECT_EQ(items.describe().stages.back().kind, "twice");
  EXPECT_EQ(items.describe().stages.back().name, "doubled");
  runtime where;
  auto run = where.run(items);
  EXPECT_THAT(collect(run), ElementsAre(0, 2, 6));
  auto stage = run.statistics().stages.back();
  EXPECT_EQ(stage.name, "doubled");
  EXPECT_EQ(stage.in, 4u);
  EXPECT_EQ(stage.out, 3u);
  EXPECT_EQ(stage.failed, 1u);
}

TEST(PerRun, AStageThatIsAClassHasAState) {
  auto items = from(up_to(10)) | doubled(on_error::skip);
  runtime where;
  auto first = where.run(items);
  for (int i = 0; i < 4; ++i) first.wait_next();
  EXPECT_THAT(collect(where, items, {.state = first.state()}), ElementsAre(10, 12, 14, 16, 18));
}

// Memory that counts what is allocated of it.
class counted_memory final : public memory_resource {
 public:
  void* allocate(std::size_t bytes, std::size_t alignment) override {
    ++allocations;
    return host_memory().allocate(bytes, alignment);
  }
  void deallocate(void* memory, std::size_t bytes, std::size_t alignment) noexcept override {
    host_memory().deallocate(memory, bytes, alignment);
  }
  device where() const noexcept override { return host_memory().where(); }
  std::string_view name() const noexcept override { return "counted memory"; }

  std::atomic<int> allocations = 0;
};

// Writes the length of a sample's key.
struct write_length {
  tensor_spec spec() const { return {element_type::i32, {1}}; }
  void operator()(const sample& in, const tensor& slot) const {
    slot.data<std::int32_t>()[0] = static_cast<std::int32_t>(in.key().size());
  }
};

// Allocates a buffer for every item.
class allocates {
 public:
  explicit allocates(memory_resource& memory) : memory_(&memory) {}
  memory_resource& host_memory() const { return *memory_; }
  std::size_t operator()(int bytes) const {
    return allocate_now(static_cast<std::size_t>(bytes)).size();
  }

 private:
  memory_resource* memory_;
};

TEST(PerRun, BuffersComeFromTheMemoryOfTheFunctionUnlessTheOptionsNameOne) {
  for (auto concurrency : {1u, 2u}) {
    counted_memory of_function, of_options;
    auto make = [&](const stage_run&) { return allocates(of_function); };
    auto run_with = [&](memory_resource* memory) {
      runtime where;
      collect(where, from(std::vector{100, 200}) |
                         map(per_run(make), {.concurrency = concurrency, .memory = memory}));
    };
    run_with(nullptr);
    EXPECT_GE(of_function.allocations, 1) << concurrency;
    of_function.allocations = 0;
    run_with(&of_options);
    EXPECT_EQ(of_function.allocations, 0) << concurrency;
    EXPECT_GE(of_options.allocations, 1) << concurrency;
  }
}

class first_of_batch {
 public:
  explicit first_of_batch(memory_resource& memory) : memory_(&memory) {}
  memory_resource& host_memory() const { return *memory_; }
  std::int32_t operator()(const sample_batch& batch) const {
    return batch.tensors().front().tensor().data<std::int32_t>()[0];
  }

 private:
  memory_resource* memory_;
};

TEST(PerRun, BatchesAreMadeInTheMemoryThatTheFunctionCopiesFrom) {
  counted_memory memory;
  auto samples =
      from(std::vector<std::string>{"a", "bb"}) | map([](std::string key) { return sample(key); });
  auto make = [&](const stage_run&) { return first_of_batch(memory); };
  for (auto concurrency : {1u, 2u}) {
    memory.allocations = 0;
    runtime where;
    auto batches = samples | batch_into(write_length(), {.size = 1});
    EXPECT_THAT(collect(where, batches | map(per_run(make), {.concurrency = concurrency})),
                ElementsAre(1, 2));
    EXPECT_GE(memory.allocations, 1);
  }
}

}  // namespace lade::per_run_test
