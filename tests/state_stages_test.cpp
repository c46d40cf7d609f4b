// Of every stage that has a state: what a run delivers that is left and gone on with, again and
// again, is what one delivers that is not.

#include <lade/batch.hpp>
#include <lade/cut.hpp>
#include <lade/filter.hpp>
#include <lade/flat_map.hpp>
#include <lade/from.hpp>
#include <lade/io/directory.hpp>
#include <lade/map.hpp>
#include <lade/pad.hpp>
#include <lade/run.hpp>
#include <lade/shuffle.hpp>
#include <lade/state.hpp>
#include <lade/window.hpp>

#include "support/pipelines.hpp"
#include "support/resume.hpp"
#include "support/temp_dir.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <stdexcept>
#include <string>
#include <vector>

namespace lade {

using namespace test;
using ints = std::vector<int>;

static unsigned any_concurrency(random& draw) { return static_cast<unsigned>(1 + draw.below(8)); }

// Left and gone on with in runtimes of any number of threads, and each time with another pipeline
// that make(draw) gives: of another concurrency.
template <class Make>
static void expect_exact(Make make) {
  auto seed = new_seed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  random draw(seed);
  runtime first({.threads = 2});
  auto whole = collect(first, make(draw));
  for (int round = 0; round < 5; ++round) {
    auto parts = with_restarts(draw, [&] { return make(draw); }, 1 + draw.below(12));
    ASSERT_EQ(parts, whole);
  }
}

class number_writer {
 public:
  tensor_spec spec() const { return {element_type::i32, {1}}; }
  void operator()(const sample& in, const tensor& slot) const {
    int number = std::stoi(in.key());
    if (number % 5 < 2) throw std::runtime_error("broken");
    slot.data<std::int32_t>()[0] = number;
  }
};

static ints numbers_in(const sample_batch& batch) {
  auto* first = batch.tensor().data<std::int32_t>();
  return {first, first + batch.size()};
}

TEST(StateOfBatchInto, IsExactWhicheverSamplesAreSkipped) {
  for (std::size_t size : {1u, 2u, 3u, 7u})
    expect_exact([size](random& draw) {
      return from(up_to(60)) | shuffle({.seed = 3}) |
             map([](int i) { return sample(std::to_string(i)); }) |
             batch_into(
                 number_writer(),
                 {.size = size, .concurrency = any_concurrency(draw), .on_error = on_error::skip}) |
             map(numbers_in);
    });
}

class writer_but {
 public:
  explicit writer_but(int broken) : broken_(broken) {}
  tensor_spec spec() const { return {element_type::i32, {1}}; }
  void operator()(const sample& in, const tensor& slot) const {
    int number = std::stoi(in.key());
    if (number == broken_) throw std::runtime_error("broken");
    slot.data<std::int32_t>()[0] = number;
  }

 private:
  int broken_;
};

TEST(StateOfBatchInto, AfterAFailureIsThatOfTheSamplesThatWereDelivered) {
  runtime runtime({.threads = 2});
  for (int broken = 0; broken < 12; ++broken)
    for (bool drop_last : {false, true}) {
      auto batches = [&](int number) {
        return from(up_to(40)) | map([](int i) { return sample(std::to_string(i)); }) |
               batch_into(writer_but(number),
                          {.size = 4, .drop_last = drop_last, .concurrency = 3}) |
               map(numbers_in);
      };
      ints all;
      auto add = [&](const ints& batch) { all.insert(all.end(), batch.begin(), batch.end()); };
      auto items = runtime.run(batches(broken));
      EXPECT_THROW(while (auto batch = items.wait_next()) add(*batch), stage_error);
      EXPECT_EQ(all, up_to(drop_last ? broken / 4 * 4 : broken));
      for (auto& batch : collect(runtime, batches(-1), {.state = items.state()})) add(batch);
      EXPECT_EQ(all, up_to(40)) << "broken " << broken << ", drop_last " << drop_last;
    }
}

// Sequences of 1 to 7 numbers.
static pipeline<std::vector<ints>> sequences(random& draw) {
  return from(up_to(50)) | shuffle({.seed = 3}) |
         map([](int i) { return ints(static_cast<std::size_t>(1 + i % 7), i); },
             {.concurrency = any_concurrency(draw)}) |
         batch(4);
}

static ints elements_of(const tensor& numbers) {
  auto* first = numbers.data<std::int32_t>();
  return {first, first + numbers.spec().bytes() / sizeof(std::int32_t)};
}

TEST(StateOfPad, IsExact) {
  expect_exact([](random& draw) {
    return sequences(draw) | pad({.value = -1, .concurrency = any_concurrency(draw)}) |
           map([](const padded_batch& batch) { return elements_of(batch.data()); });
  });
}

TEST(StateOfPack, IsExact) {
  expect_exact([](random& draw) {
    return sequences(draw) | pack({.concurrency = any_concurrency(draw)}) |
           map([](const packed_batch& batch) { return elements_of(batch.data()); });
  });
}

TEST(StateOfUnbatch, IsExact) {
  expect_exact([](random& draw) {
    return from(up_to(50)) | shuffle({.seed = 3}) | batch(4) | unbatch() |
           map([](int i) { return -i; }, {.concurrency = any_concurrency(draw)});
  });
  expect_exact([](random&) { return from(up_to(50)) | window(3, {.step = 5}) | unbatch(); });
}

TEST(StateOfParts, IsExactIfTheLastPartsOfABatchAreDropped) {
  expect_exact([](random& draw) {
    return from(up_to(60)) | batch(4) | unbatch() | filter([](int i) { return i % 4 == 0; }) |
           flat_map([](int i) { return ints(3, i); }, {.concurrency = any_concurrency(draw)});
  });
}

TEST(StateOfParts, IsExactIfThoseOfABatchHaveUnlikeSizes) {
  expect_exact([](random& draw) {
    return sequences(draw) | unbatch() |
           flat_map([](ints group) { return group; }, {.concurrency = any_concurrency(draw)});
  });
}

TEST(StateOfRetry, CountsAnItemOnceHoweverManyCallsItTook) {
  std::vector<std::atomic<int>> calls(60);
  expect_exact([&calls](random& draw) {
    auto every_second_time = [&calls](int i) {
      if (calls[static_cast<std::size_t>(i)]++ % 2 == 0) throw std::runtime_error("not yet");
      return i;
    };
    return from(up_to(60)) | shuffle({.seed = 3}) |
           map(every_second_time,
               {.concurrency = any_concurrency(draw), .retry = {.attempts = 2, .pause = {}}}) |
           batch(3);
  });
}

TEST(StateOfSubstitutes, IsThatOfTheItemsWhosePlaceTheyTake) {
  expect_exact([](random& draw) {
    auto odd_only = [](int i) {
      if (i % 2 == 0) throw std::runtime_error("even");
      return i;
    };
    return from(up_to(60)) | shuffle({.seed = 3}) |
           map(odd_only, {.concurrency = any_concurrency(draw), .substitute = -1}) | batch(4);
  });
}

TEST(StateOfFilter, IsExactWithAnotherConcurrency) {
  expect_exact([](random& draw) {
    return from(up_to(60)) |
           filter([](int i) { return i % 3 != 1; }, {.concurrency = any_concurrency(draw)}) |
           batch(4);
  });
}

TEST(StateOfAListing, IsExactInEveryOrder) {
  testing_support::temp_dir data;
  for (int i = 0; i < 30; ++i)
    data.write(std::to_string(i % 3) + "/" + std::to_string(i) + ".txt", "content");
  auto key = [](const sample& file) { return file.key(); };
  auto files = from(io::files(data.path(), "**/*.txt"));
  expect_exact([&](random& draw) {
    return files | shuffle({.seed = 7}) | repeat(2) |
           map(key, {.concurrency = any_concurrency(draw)});
  });
  expect_exact([&](random& draw) {
    return files | skip(3) | take(20) | map(key, {.concurrency = any_concurrency(draw)});
  });
  expect_exact([&](random&) { return files | map(key) | batch(3); });
}

TEST(StateOfCompletionOrder, HasEveryItemOnceWithAnotherConcurrency) {
  auto seed = new_seed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  random draw(seed);
  auto make = [&] {
    return from(up_to(200)) | shuffle({.seed = 3}) |
           map([](int i) { return i; },
               {.concurrency = any_concurrency(draw), .order = item_order::completion}) |
           batch(1 + draw.below(5));
  };
  ints all;
  for (auto& each : with_restarts(draw, make, 5)) all.insert(all.end(), each.begin(), each.end());
  std::ranges::sort(all);
  EXPECT_EQ(all, up_to(200));
}

}  // namespace lade
