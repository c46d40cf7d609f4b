// Of every stage that has a state: what a run delivers that is left and gone on with, again and
// again, is what one delivers that is not.

#include <lade/batch.hpp>
#include <lade/cut.hpp>
#include <lade/failure.hpp>
#include <lade/filter.hpp>
#include <lade/flat_map.hpp>
#include <lade/from.hpp>
#include <lade/io/directory.hpp>
#include <lade/lineage.hpp>
#include <lade/map.hpp>
#include <lade/pad.hpp>
#include <lade/run.hpp>
#include <lade/shuffle.hpp>
#include <lade/state.hpp>
#include <lade/waiting_items.hpp>
#include <lade/window.hpp>

#include "../support/pipelines.hpp"
#include "../support/resume.hpp"
#include "../support/temp_dir.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace lade::state_stages_test {

using namespace test;
using ints = std::vector<int>;

static unsigned any_concurrency(random& draw) { return static_cast<unsigned>(1 + draw.below(8)); }

// Interrupted and resumed in runtimes of any number of threads, each time with another pipeline
// that make(draw) returns: of another concurrency.
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

TEST(StateOfSubstitutes, IsThatOfTheReplacedItems) {
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

// What a function or a writer of several does with a number: it fails, once or whenever it is
// tried, or is dropped. Of several in flight, the last ends first.
enum class fate { given, tried_again, skipped, dropped };
static fate fate_of(int number) { return static_cast<fate>(number * 3 % 7 % 4); }

static bool ends_well(int number) { return fate_of(number) <= fate::tried_again; }

struct uneven_several {
  static constexpr unsigned items_at_a_time = 3;

  std::optional<int> operator()(int number) const {
    if (fate_of(number) == fate::skipped) throw std::runtime_error("broken");
    return fate_of(number) == fate::dropped ? std::nullopt : std::optional(number);
  }
  void operator()(waiting_items<int, int>& waiting) const {
    std::vector<taken_item<int, int>> all;
    while (auto next = waiting.next()) all.push_back(*std::move(next));
    for (; !all.empty(); all.pop_back()) {
      auto number = *all.back();
      switch (fate_of(number)) {
        case fate::given: all.back().give(number); break;
        case fate::dropped: all.back().drop(); break;
        default: all.back().fail(std::make_exception_ptr(std::runtime_error("not yet")));
      }
    }
  }
};

struct uneven_writer {
  static constexpr unsigned items_at_a_time = 3;

  tensor_spec spec() const { return {element_type::i32, {1}}; }
  void operator()(const sample& in, const tensor& slot) const {
    int number = std::stoi(in.key());
    if (!ends_well(number)) throw std::runtime_error("broken");
    slot.data<std::int32_t>()[0] = number;
  }
  void operator()(waiting_samples& waiting) const {
    std::vector<taken_sample> all;
    while (auto next = waiting.next()) all.push_back(*std::move(next));
    for (; !all.empty(); all.pop_back()) {
      auto& last = all.back();
      int number = std::stoi(last->key());
      last.slot().data<std::int32_t>()[0] = number;
      if (fate_of(number) == fate::given)
        last.done();
      else
        last.fail(std::make_exception_ptr(std::runtime_error("not yet")));
    }
  }
};

static const retry twice{.attempts = 2, .pause = {}};

static pipeline<int> given_by_several(int end, unsigned concurrency) {
  return from(up_to(end)) |
         map(uneven_several(),
             {.concurrency = concurrency, .retry = twice, .on_error = on_error::skip});
}

static pipeline<ints> batches_of_several(int end, unsigned concurrency) {
  batch_into_options options{
      .size = 4, .concurrency = concurrency, .retry = twice, .on_error = on_error::skip};
  return from(up_to(end)) | map([](int i) { return sample(std::to_string(i)); }) |
         batch_into(uneven_writer(), options) | map(numbers_in);
}

// Left after each number of items: the positions behind which the rest begins are what
// `behind(item)` says of the last one.
template <class T>
static void expect_exact_at_every_place(const pipeline<T>& what, const std::vector<T>& expected,
                                        int (*behind)(const T& last)) {
  runtime where({.threads = 3});
  for (std::size_t place = 0; place <= expected.size(); ++place) {
    std::vector<T> all;
    run_options next;
    ASSERT_TRUE(take_part(where, what, place, next, all));
    if (place > 0) {
      lineage positions;
      positions.add({0, static_cast<std::uint64_t>(behind(all.back()) - 1)});
      ASSERT_EQ(to_string(next.state->delivered), to_string(positions)) << "place " << place;
    }
    for (auto& each : collect(where, what, next)) all.push_back(each);
    ASSERT_EQ(all, expected) << "place " << place;
  }
}

TEST(StateOfSeveralAtATime, IsExactAtEveryPlaceThoughSomeFailAreDroppedOrAreTriedAgain) {
  constexpr int end = 45;
  auto expected = up_to(end);
  std::erase_if(expected, [](int i) { return !ends_well(i); });
  for (unsigned concurrency : {1u, 2u, 3u})
    expect_exact_at_every_place<int>(given_by_several(end, concurrency), expected,
                                     [](const int& last) { return last + 1; });
}

TEST(StateOfSeveralAtATime, OfABatchIsExactAtEveryPlace) {
  constexpr int end = 44;
  std::vector<ints> expected;
  for (int first = 0; first < end; first += 4) {
    ints batch{first, first + 1, first + 2, first + 3};
    std::erase_if(batch, [](int i) { return !ends_well(i); });
    if (!batch.empty()) expected.push_back(batch);
  }
  for (unsigned concurrency : {1u, 2u, 3u})
    expect_exact_at_every_place<ints>(batches_of_several(end, concurrency), expected,
                                      [](const ints& last) { return last.back() / 4 * 4 + 4; });
}

TEST(StateOfSeveralAtATime, IsExactWithAnotherConcurrency) {
  expect_exact([](random& draw) { return given_by_several(60, any_concurrency(draw)); });
  expect_exact([](random& draw) { return batches_of_several(60, any_concurrency(draw)); });
}

struct several_but {
  static constexpr unsigned items_at_a_time = 4;
  int broken;

  int operator()(int number) const {
    if (number == broken) throw std::runtime_error("broken");
    return number;
  }
  void operator()(waiting_items<int, int>& waiting) const {
    std::vector<taken_item<int, int>> all;
    while (auto next = waiting.next()) all.push_back(*std::move(next));
    for (; !all.empty(); all.pop_back()) {
      auto number = *all.back();
      if (number == broken)
        all.back().fail(std::make_exception_ptr(std::runtime_error("broken")));
      else
        all.back().give(number);
    }
  }
};

// Those behind it may have been given before it has failed.
TEST(StateOfSeveralAtATime, AfterAFailureIsThatOfTheItemsBeforeIt) {
  runtime runtime({.threads = 2});
  for (int broken = 0; broken < 12; ++broken) {
    map_options options{.concurrency = 2};
    ints all;
    auto items = runtime.run(from(up_to(40)) | map(several_but{broken}, options));
    EXPECT_THROW(while (auto item = items.wait_next()) all.push_back(*item), stage_error);
    EXPECT_EQ(all, up_to(broken));
    ASSERT_EQ(items.failures().size(), 1u);
    EXPECT_EQ(to_string(items.failures()[0].positions), std::to_string(broken));
    auto rest = from(up_to(40)) | map(several_but{-1}, options);
    for (auto item : collect(runtime, rest, {.state = items.state()})) all.push_back(item);
    EXPECT_EQ(all, up_to(40)) << "broken " << broken;
  }
}

}  // namespace lade::state_stages_test
