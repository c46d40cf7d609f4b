// The header before all others, so that nothing in it may capture names that theirs use.
#include <lade/pad.hpp>

#include <lade/autotune.hpp>
#include <lade/batch.hpp>
#include <lade/bucket.hpp>
#include <lade/cut.hpp>
#include <lade/description.hpp>
#include <lade/error.hpp>
#include <lade/flat_map.hpp>
#include <lade/from.hpp>
#include <lade/map.hpp>
#include <lade/memory_resource.hpp>
#include <lade/random.hpp>
#include <lade/run.hpp>
#include <lade/shuffle.hpp>
#include <lade/thread_pool.hpp>
#include <lade/through.hpp>

#include "../support/pipelines.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <limits>
#include <new>
#include <numeric>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lade::pad_test {

using namespace test;
using testing::ElementsAre;

using testing::HasSubstr;
using testing::IsEmpty;
using testing::ThrowsMessage;
using tokens = std::vector<std::int32_t>;
using token_batch = std::vector<tokens>;

template <class T>
static std::vector<T> elements(const tensor& of) {
  EXPECT_TRUE(of.contiguous());
  return {of.data<T>(), of.data<T>() + of.spec().elements()};
}

template <class S, class Stage>
static auto one(const std::vector<S>& batch, const Stage& stage) {
  runtime runtime({.threads = 1});
  return collect(runtime, from(std::vector<std::vector<S>>{batch}) | stage).at(0);
}

// [length, 2] of i32: first, first + 1, ...
static tensor pairs(std::int64_t length, std::int32_t first) {
  tensor made(element_type::i32, {length, 2});
  std::iota(made.data<std::int32_t>(), made.data<std::int32_t>() + 2 * length, first);
  return made;
}

TEST(Pad, FillsUpToTheLongest) {
  auto padded = one(token_batch{{1, 2, 3}, {}, {4}}, pad({.value = -1}));
  EXPECT_EQ(padded.data().spec(), (tensor_spec{element_type::i32, {3, 3}}));
  EXPECT_THAT(elements<std::int32_t>(padded.data()), ElementsAre(1, 2, 3, -1, -1, -1, 4, -1, -1));
  EXPECT_THAT(elements<std::int64_t>(padded.lengths()), ElementsAre(3, 0, 1));
  EXPECT_EQ(padded.size(), 3u);
  EXPECT_EQ(padded.bytes(), 9u * 4 + 3 * 8);
}

TEST(Pad, FillsUpToAMultipleOrALength) {
  EXPECT_EQ(one(token_batch{{1, 2, 3}}, pad({.multiple_of = 8})).data().shape(),
            (dimensions{1, 8}));
  EXPECT_EQ(one(token_batch{{1, 2, 3}}, pad({.length = 5})).data().shape(), (dimensions{1, 5}));
  EXPECT_EQ(one(token_batch{{}, {}}, pad({.multiple_of = 8})).data().shape(), (dimensions{2, 0}));
}

TEST(Pad, TakesTensorsOfAnyShape) {
  auto padded = one(std::vector{pairs(1, 5), pairs(2, 7)}, pad());
  EXPECT_EQ(padded.data().shape(), (dimensions{2, 2, 2}));
  EXPECT_THAT(elements<std::int32_t>(padded.data()), ElementsAre(5, 6, 0, 0, 7, 8, 9, 10));
  EXPECT_THAT(elements<std::int64_t>(padded.lengths()), ElementsAre(1, 2));
}

template <class E>
static void expect_padded(double value) {
  auto padded = one(std::vector<std::vector<E>>{{E(1), E(2)}, {E(3)}}, pad({.value = value}));
  EXPECT_THAT(elements<E>(padded.data()), ElementsAre(E(1), E(2), E(3), static_cast<E>(value)));
}

TEST(Pad, TakesElementsOfEveryType) {
  expect_padded<std::uint8_t>(255);
  expect_padded<std::int8_t>(-128);
  expect_padded<std::int16_t>(-32768);
  expect_padded<std::uint16_t>(65535);
  expect_padded<std::uint32_t>(4294967295.0);
  expect_padded<std::uint64_t>(0x1p63);
  expect_padded<std::int32_t>(-2147483648.0);
  expect_padded<std::int64_t>(-0x1p63);
  expect_padded<float>(-std::numeric_limits<double>::infinity());
  expect_padded<double>(0.1);
  tensor half(element_type::bf16, {1});
  EXPECT_EQ(one(std::vector{half}, pad({.length = 2})).data().type(), element_type::bf16);
}

TEST(Pad, RefusesAValueOutsideTheType) {
  auto filling = [](auto e, double value) {
    std::vector<std::vector<decltype(e)>> batch{{e}};
    return [batch, value] { one(batch, pad({.value = value})); };
  };
  auto says = [](const char* type) {
    return ThrowsMessage<stage_error>(HasSubstr("no value for elements of " + std::string(type)));
  };
  EXPECT_THAT(filling(std::uint8_t(), 256), says("u8"));
  EXPECT_THAT(filling(std::uint8_t(), -1), says("u8"));
  EXPECT_THAT(filling(std::uint16_t(), 65536), says("u16"));
  EXPECT_THAT(filling(std::int32_t(), 0.5), says("i32"));
  EXPECT_THAT(filling(std::int64_t(), 0x1p63), says("i64"));
  EXPECT_THAT(filling(std::int64_t(), std::nan("")), says("i64"));
  std::vector halves{tensor(element_type::f16, {1})};
  EXPECT_THAT([&] { one(halves, pad({.value = 1})); }, says("f16"));
}

TEST(Pad, AFailureNamesTheValueThatDoesNotFit) {
  runtime runtime({.threads = 1});
  auto padded = from(std::vector<token_batch>{{{1, 2}, {3}}}) | pad({.value = 1e300});
  EXPECT_EQ(only_failure(runtime, padded),
            "pad (item 0): fill up with 1e+300: no value for elements of i32");
}

TEST(Pad, ABatchThatCannotBePaddedFails) {
  auto says = [](const char* why) { return ThrowsMessage<stage_error>(HasSubstr(why)); };
  auto padding = [](auto batch, pad_options options = {}) {
    return [batch, options] { one(batch, pad(options)); };
  };
  EXPECT_THAT(padding(token_batch{}), says("collate sequences: none"));
  EXPECT_THAT(padding(token_batch{{1, 2, 3}}, {.length = 2}), says("pad to 2: a sequence of 3"));
  EXPECT_THAT(padding(std::vector{pairs(1, 0), tensor(element_type::i32, {1, 3})}),
              says("elements of i32[2] and of i32[3]"));
  EXPECT_THAT(padding(std::vector{pairs(1, 0), tensor(element_type::f32, {1, 2})}),
              says("elements of i32[2] and of f32[2]"));
  EXPECT_THAT(padding(std::vector{tensor(element_type::i32, {})}), says("it has no dimension"));
  auto memory = pairs(2, 0).memory();
  tensor strided({element_type::i32, {2, 2}}, {1, 2}, memory, memory.data());
  EXPECT_THAT(padding(std::vector{strided}), says("its elements are not in one piece"));
  tensor far({element_type::i32, {2}},
             buffer(nullptr, memory.bytes(), {.type = device::kind::cuda, .index = 0}));
  EXPECT_THAT(padding(std::vector{far}), says("it is not in host memory"));
}

TEST(Pad, MaySkipBatchesThatFail) {
  runtime runtime({.threads = 2});
  std::vector<token_batch> batches{{{1}}, {{1, 2, 3}}, {{2}}};
  auto padded = from(batches) | pad({.length = 2, .concurrency = 3, .on_error = on_error::skip});
  auto items = runtime.run(padded);
  EXPECT_EQ(collect(items).size(), 2u);
  EXPECT_EQ(items.statistics().stages.back().skipped, 1u);
}

// A stage with a budget of one failure, for batches of which three are bad.
template <class Stage>
static void expect_the_second_failure_to_end_it(const Stage& stage, const std::string& text) {
  runtime runtime({.threads = 1});
  std::vector<token_batch> batches{{{1}}, {}, {{2}}, {}, {}};
  auto first = from(batches) | take(3) | stage;
  EXPECT_EQ(collect(runtime, first).size(), 2u);
  EXPECT_THAT([&] { collect(runtime, from(batches) | stage); }, ThrowsMessage<stage_error>(text));
}

TEST(Pad, EndsWithMoreFailuresThanItsBudget) {
  expect_the_second_failure_to_end_it(
      pad({.concurrency = 1, .on_error = on_error::skip, .error_budget = {.count = 1}}),
      "pad (item 3): collate sequences: none (more failures than the budget allows)");
}

// An automatic stage, for which a run may use two of four threads.
template <class Stage>
static void expect_two_shared_cpus(const Stage& stage) {
  runtime runtime({.threads = 4});
  auto items =
      runtime.run(from(std::vector<token_batch>{{{1}}, {{2}}}) | stage, {.tune = {.cpus = 2}});
  EXPECT_EQ(collect(items).size(), 2u);
  auto seen = items.statistics().stages.back();
  EXPECT_EQ(seen.workers, 2u);
  EXPECT_EQ(seen.shared_threads, 2u);
  EXPECT_THAT(items.settings(), ElementsAre(stage_setting{seen.name, 2}));
}

TEST(Pad, SharesTheCpusOfAutomaticStages) {
  expect_two_shared_cpus(pad({.concurrency = automatic}));
}

TEST(Pad, MayWorkOnADedicatedPool) {
  runtime runtime({.threads = 1});
  thread_pool pool({.threads = 3});
  auto batches = from(token_batch{{1}, {2, 3}, {4}}) | batch(2);
  auto own_threads_of = [&](const auto& what) {
    auto items = runtime.run(what);
    EXPECT_THAT(collect(items), testing::SizeIs(2));
    return items.statistics().stages.back().own_threads;
  };
  EXPECT_EQ(own_threads_of(batches | pad({.concurrency = 2, .pool = &pool})), 3u);
  EXPECT_EQ(own_threads_of(batches | pack({.concurrency = 2, .pool = &pool})), 3u);
  EXPECT_EQ(own_threads_of(batches | pack({.concurrency = 2})), 0u);
}

TEST(Pad, RefusesOptionsThatCannotWork) {
  EXPECT_THAT([] { pad({.length = 10, .multiple_of = 8, .name = "tokens"}); },
              ThrowsMessage<error>("tokens: a length of 10, which is no multiple of 8"));
}

TEST(Pad, TakesTheMemoryOfTheRun) {
  runtime runtime({.threads = 1});
  auto items = runtime.run(from(std::vector<token_batch>{{{1, 2, 3}}}) | pad());
  auto batch = items.wait_next();
  EXPECT_GE(runtime.memory().stats().used_bytes, batch->bytes());
  EXPECT_EQ(items.statistics().stages.back().bytes, batch->bytes());
}

TEST(Pack, PutsSequencesOneAfterTheOther) {
  auto packed = one(token_batch{{1, 2, 3}, {}, {4}}, pack());
  EXPECT_EQ(packed.data().spec(), (tensor_spec{element_type::i32, {4}}));
  EXPECT_THAT(elements<std::int32_t>(packed.data()), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(elements<std::int64_t>(packed.offsets()), ElementsAre(0, 3, 3, 4));
  EXPECT_EQ(packed.size(), 3u);
  EXPECT_EQ(packed.longest(), 3);
  EXPECT_EQ(packed.bytes(), 4u * 4 + 4 * 8);
}

TEST(Pack, TakesTensorsOfAnyShape) {
  auto packed = one(std::vector{pairs(1, 5), pairs(2, 7)}, pack());
  EXPECT_EQ(packed.data().shape(), (dimensions{3, 2}));
  EXPECT_THAT(elements<std::int32_t>(packed.data()), ElementsAre(5, 6, 7, 8, 9, 10));
}

TEST(Pack, ABatchThatCannotBePackedFails) {
  EXPECT_THAT([] { one(token_batch{}, pack({.name = "tokens"})); },
              ThrowsMessage<stage_error>("tokens (item 0): collate sequences: none"));
  tensor endless({element_type::u8, {std::numeric_limits<std::int64_t>::max(), 0}},
                 buffer(std::size_t{1}));
  EXPECT_THAT([&] { one(std::vector{endless, endless}, pack()); },
              ThrowsMessage<stage_error>(HasSubstr("pack (item 0): too great a length")));
}

TEST(Pack, SharesTheCpusOfAutomaticStages) {
  expect_two_shared_cpus(pack({.concurrency = automatic}));
}

TEST(Pack, EndsWithMoreFailuresThanItsBudget) {
  expect_the_second_failure_to_end_it(
      pack({.concurrency = 1, .on_error = on_error::skip, .error_budget = {.count = 1}}),
      "pack (item 3): collate sequences: none (more failures than the budget allows)");
}

// The sequences that were packed into a row, and what fills it up behind them.
static std::pair<token_batch, tokens> unpacked(const packed_batch& row) {
  auto all = elements<std::int32_t>(row.data());
  auto offsets = elements<std::int64_t>(row.offsets());
  token_batch sequences;
  for (std::size_t i = 0; i < row.size(); ++i)
    sequences.emplace_back(all.begin() + offsets[i], all.begin() + offsets[i + 1]);
  return {sequences, {all.begin() + offsets.back(), all.end()}};
}

static std::vector<token_batch> rows_of(const token_batch& sequences,
                                        const pack_rows_options& options) {
  runtime runtime({.threads = 1});
  std::vector<token_batch> rows;
  for (auto& row : collect(runtime, from(sequences) | pack_rows(options))) {
    EXPECT_EQ(row.data().shape(), dimensions{static_cast<std::int64_t>(options.length)});
    auto [segments, rest] = unpacked(row);
    EXPECT_EQ(rest, tokens(rest.size(), static_cast<std::int32_t>(options.value)));
    rows.push_back(segments);
  }
  return rows;
}

// `length` times the same number.
static tokens repeated(std::size_t length, std::int32_t number) { return tokens(length, number); }

TEST(PackRows, PutsEachIntoTheFirstRowWithSpace) {
  token_batch in{repeated(3, 1), repeated(3, 2), repeated(1, 3), repeated(1, 4), repeated(2, 5)};
  EXPECT_THAT(
      rows_of(in, {.length = 4, .value = -1}),
      ElementsAre(token_batch{in[0], in[2]}, token_batch{in[1], in[3]}, token_batch{in[4]}));
  EXPECT_THAT(rows_of({{}, {7}}, {.length = 1}), ElementsAre(token_batch{{}, {7}}));
  EXPECT_THAT(rows_of({}, {.length = 4}), IsEmpty());
}

TEST(PackRows, YieldsTheFullestRowWhenTooManyAreOpen) {
  token_batch in{repeated(5, 1), repeated(6, 2), repeated(7, 3), repeated(3, 4)};
  EXPECT_THAT(rows_of(in, {.length = 8, .open_rows = 2}),
              ElementsAre(token_batch{in[1]}, token_batch{in[0], in[3]}, token_batch{in[2]}));
}

TEST(PackRows, HasTheSequencesAsTensorsToo) {
  runtime runtime({.threads = 1});
  auto rows = collect(runtime, from(std::vector{pairs(1, 5), pairs(2, 7), pairs(1, 11)}) |
                                   pack_rows({.length = 3}));
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_THAT(elements<std::int32_t>(rows[0].data()), ElementsAre(5, 6, 7, 8, 9, 10));
  EXPECT_THAT(elements<std::int32_t>(rows[1].data()), ElementsAre(11, 12, 0, 0, 0, 0));
  EXPECT_THAT(elements<std::int64_t>(rows[1].offsets()), ElementsAre(0, 1));
}

TEST(PackRows, SplitsSequencesThatAreLongerThanARowOnRequest) {
  token_batch in{{1}, {2, 3, 4, 5, 6, 7, 8}, {9, 10}};
  EXPECT_THAT(rows_of(in, {.length = 3, .split = true}),
              ElementsAre(token_batch{{2, 3, 4}}, token_batch{{5, 6, 7}}, token_batch{{1}, {8}},
                          token_batch{{9, 10}}));
  EXPECT_THAT(rows_of({repeated(6, 1)}, {.length = 3, .split = true}),
              ElementsAre(token_batch{repeated(3, 1)}, token_batch{repeated(3, 1)}));
  runtime runtime({.threads = 1});
  auto items = runtime.run(from(in) | pack_rows({.length = 3, .split = true}));
  items.wait_next();
  EXPECT_THAT([&] { items.state(); },
              ThrowsMessage<error>("state of a run: pack_rows splits sequences"));
}

TEST(PackRows, ASequenceThatCannotBePackedFails) {
  token_batch in{{1}, {1, 2, 3}, {2}};
  EXPECT_THAT(
      [&] { rows_of(in, {.length = 2}); },
      ThrowsMessage<stage_error>("pack_rows (item 1): pack into rows of 2: a sequence of 3"));
  EXPECT_THAT(rows_of(in, {.length = 2, .on_error = on_error::skip}),
              ElementsAre(token_batch{{1}, {2}}));
  EXPECT_THAT([&] { rows_of(in, {.length = 4, .value = 0.5}); },
              ThrowsMessage<stage_error>(HasSubstr("no value for elements of i32")));
  runtime runtime({.threads = 1});
  std::vector unlike{pairs(1, 0), tensor(element_type::f32, {1, 2})};
  EXPECT_THAT([&] { collect(runtime, from(unlike) | pack_rows({.length = 4, .name = "rows"})); },
              ThrowsMessage<stage_error>(HasSubstr("elements of i32[2] and of f32[2]")));
}

TEST(PackRows, EndsWithMoreFailuresThanItsBudget) {
  pack_rows_options bounded{.length = 2, .on_error = on_error::skip, .error_budget = {.count = 1}};
  token_batch in{{1, 2, 3}, {4, 5}, {6, 7, 8}};
  EXPECT_THAT(rows_of({in[0], in[1]}, bounded), ElementsAre(token_batch{{4, 5}}));
  EXPECT_THAT([&] { rows_of(in, bounded); },
              ThrowsMessage<stage_error>("pack_rows (item 2): pack into rows of 2: a sequence of 3 "
                                         "(more failures than the budget allows)"));
}

static async_generator<std::string> origins(async_generator<packed_batch> in) {
  while (co_await in.next()) {
    auto positions = to_string(in.origin());
    co_yield positions;
  }
}

TEST(PackRows, HasTheLineageOfItsSequences) {
  runtime runtime({.threads = 1});
  token_batch in{repeated(3, 1), repeated(3, 2), repeated(9, 9), repeated(1, 3), repeated(1, 4)};
  auto rows = from(in) | pack_rows({.length = 4, .on_error = on_error::skip});
  EXPECT_THAT(collect(runtime, rows | through(origins)), ElementsAre("0, 2-3", "1, 4"));
}

TEST(PackRows, RowsOfOneSequenceDrawDifferentRandomNumbers) {
  runtime runtime({.threads = 2});
  auto twice = [](const tokens& each) { return token_batch{each, each}; };
  auto sequences = from(token_batch{repeated(13, 1), repeated(11, 2)});
  auto draw = [](const packed_batch&, random numbers) { return numbers(); };
  for (auto& in : {sequences, sequences | flat_map(twice)}) {
    auto rows = in | pack_rows({.length = 4, .split = true});
    auto drawn = collect(runtime, rows | shuffle({.window = 1}) | map(draw));
    EXPECT_EQ(std::set(drawn.begin(), drawn.end()).size(), collect(runtime, rows).size());
    auto shuffled = collect(runtime, rows | shuffle({.window = 20}) | map(draw));
    std::ranges::sort(drawn);
    std::ranges::sort(shuffled);
    EXPECT_EQ(shuffled, drawn);
  }
}

TEST(PackRows, AfterAnInterruptionEverySequenceIsDeliveredOnce) {
  auto seed = new_seed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  random draw(seed);
  runtime runtime({.threads = 2});
  for (int round = 0; round < 50; ++round) {
    token_batch in(draw.below(100));
    for (std::size_t i = 0; i < in.size(); ++i)
      in[i] = repeated(1 + draw.below(20), static_cast<std::int32_t>(i));
    auto rows = from(in) | map([](const tokens& each) { return each; }) |
                pack_rows({.length = 20, .open_rows = 1 + draw.below(5)});
    token_batch seen;
    run_options options;
    for (bool more = true; more;) {
      auto run = runtime.run(rows, options);
      for (auto count = 1 + draw.below(5); more && count > 0; --count) {
        auto row = run.wait_next();
        more = row.has_value();
        if (!more) break;
        auto sequences = unpacked(*row).first;
        seen.insert(seen.end(), sequences.begin(), sequences.end());
      }
      options.state = run.state();
    }
    std::ranges::sort(seen);
    std::ranges::sort(in);
    ASSERT_EQ(seen, in);
  }
}

TEST(PackRows, TakesTheMemoryOfTheRun) {
  runtime runtime({.threads = 1});
  auto items = runtime.run(from(token_batch{{1, 2}}) | pack_rows({.length = 1024}));
  auto row = items.wait_next();
  EXPECT_GE(runtime.memory().stats().used_bytes, row->bytes());
  EXPECT_EQ(items.statistics().stages.back().bytes, row->bytes());
}

// Memory of the host, of which one allocation fails.
class memory_that_fails_once final : public memory_resource {
 public:
  explicit memory_that_fails_once(int allocations_before) : left_(allocations_before) {}
  void* allocate(std::size_t bytes, std::size_t alignment) override {
    if (left_-- == 0) throw std::bad_alloc();
    return host_memory().allocate(bytes, alignment);
  }
  void deallocate(void* memory, std::size_t bytes, std::size_t alignment) noexcept override {
    host_memory().deallocate(memory, bytes, alignment);
  }
  device where() const noexcept override { return host_memory().where(); }
  std::string_view name() const noexcept override { return "memory that fails"; }
  bool has_failed() const noexcept { return left_ < 0; }

 private:
  std::atomic<int> left_;
};

TEST(PackRows, WithoutMemoryNoSequenceIsLostButTheOneThatFails) {
  token_batch in;
  for (int i = 0; i < 12; ++i) {
    in.push_back({});
    for (int j = 0; j < 1 + i % 7; ++j) in.back().push_back(100 * i + j);
  }
  bool failed = true;
  for (int allocation = 0; failed; ++allocation) {
    memory_that_fails_once memory(allocation);
    runtime where({.threads = 1, .memory = &memory});
    auto run = where.run(
        from(in) |
        pack_rows({.length = 3, .open_rows = 2, .split = true, .on_error = on_error::skip}));
    std::multiset<std::int32_t> delivered;
    try {
      for (auto& row : run)
        for (std::int64_t i = 0;
             i < row.offsets().data<std::int64_t>()[static_cast<std::int64_t>(row.size())]; ++i)
          delivered.insert(row.data().data<std::int32_t>()[i]);
    } catch (const error&) {
      failed = memory.has_failed();
      continue;  // the last rows could not be completed: the run has failed
    }
    failed = memory.has_failed();
    lineage dropped;
    for (auto& each : run.failures()) dropped.merge(each.positions);
    for (std::size_t i = 0; i < in.size(); ++i)
      for (auto token : in[i])
        EXPECT_TRUE(delivered.count(token) == 1 || dropped.contains(i))
            << token << " where allocation " << allocation << " fails";
  }
}

static sample sentence(const std::string& key, std::int64_t length) {
  std::vector<field> fields;
  tensor ids(element_type::i32, {length});
  std::iota(ids.data<std::int32_t>(), ids.data<std::int32_t>() + length, 1);
  fields.emplace_back("tokens", ids);
  fields.emplace_back("weight", 0.5);
  fields.emplace_back("text", key);
  return sample(key).with_fields(std::move(fields));
}

TEST(Pad, MakesNamedTensorsOfTheFieldsOfSamples) {
  auto padded = one(std::vector<sample>{sentence("a", 3), sentence("b", 1)},
                    pad({.value = -1, .fields = "tokens,weight"}));
  EXPECT_THAT(elements<std::int32_t>(padded["tokens"]), ElementsAre(1, 2, 3, 1, -1, -1));
  EXPECT_THAT(elements<std::int64_t>(padded["tokens.lengths"]), ElementsAre(3, 1));
  EXPECT_THAT(elements<double>(padded["weight"]), ElementsAre(0.5, 0.5));
  EXPECT_EQ(padded.samples()[1].field("text").text(), "b");
  EXPECT_EQ(padded.samples()[1].find_field("tokens"), nullptr);
}

TEST(Pad, SeesTheFieldsOfSamplesInBuckets) {
  runtime runtime({.threads = 1});
  std::vector<sample> sentences;
  for (int i = 0; i < 8; ++i) sentences.push_back(sentence(std::to_string(i), i % 2 ? 10 : 2));
  auto length = [](const sample& each) { return each.field("tokens").tensor().shape()[0]; };
  auto batches = collect(runtime, from(sentences) | bucket(length, {.boundaries = {4}, .size = 4}) |
                                      pad({.fields = "tokens"}));
  ASSERT_EQ(batches.size(), 2u);
  for (auto& batch : batches) {
    auto longest = batch["tokens"].shape()[1];
    EXPECT_THAT(elements<std::int64_t>(batch["tokens.lengths"]), testing::Each(longest));
  }
}

TEST(Pad, RefusesSamplesWhoseFieldsCannotBePadded) {
  auto refuses = [](std::vector<sample> samples, std::string_view why) {
    EXPECT_THAT([&] { one(samples, pad({.fields = "tokens"})); },
                ThrowsMessage<error>(HasSubstr(std::string(why))));
  };
  refuses({sentence("a", 2), sample("b")}, "of b into a tensor: the sample has no such field");
  refuses({sentence("a", 2), sample("b").with_field(field("tokens", 1))},
          "pad field tokens of b: it is a number, and a tensor in other samples");
  EXPECT_THAT([] { one(std::vector<sample>{sentence("a", 2)}, pad()); },
              ThrowsMessage<error>(HasSubstr("must be set (fields)")));
}

TEST(Pad, IsDescribed) {
  thread_pool own({.threads = 1});
  auto batches = from(std::vector<std::vector<int>>{{1}, {2, 3}}) | batch(2);
  EXPECT_THAT(to_string((batches | pad()).describe()),
              HasSubstr("3 pad of 2, on the CPU pool, 1 "));
  auto padded = batches | pad({.length = 8, .multiple_of = 4, .value = -0.5, .concurrency = 3});
  EXPECT_THAT(
      to_string(padded.describe()),
      HasSubstr("3 pad of 2, on the CPU pool, concurrency 3, length 8, multiple_of 4, value "
                "-0.5, 1 items"));
  EXPECT_EQ(padded.describe().stages.back().held_items, 6u);
  auto packed = batches | pack({.concurrency = automatic, .pool = &own});
  EXPECT_THAT(to_string(packed.describe()),
              HasSubstr("3 pack of 2, pool lade-cpu, concurrency automatic, 1 items"));
  EXPECT_EQ(packed.describe().stages.back().held_items, std::nullopt);
}

TEST(PackRows, IsDescribed) {
  auto sequences = from(std::vector<std::vector<int>>{{1}, {2, 3}});
  auto rows = sequences | pack_rows({.length = 8, .open_rows = 2});
  EXPECT_THAT(to_string(rows.describe()),
              HasSubstr("2 pack_rows of 1, length 8, open_rows 2, reordered"));
  EXPECT_EQ(rows.describe().stages.back().held_items, 3u);
  auto split = sequences | pack_rows({.length = 8, .split = true, .value = 1});
  EXPECT_THAT(to_string(split.describe()),
              HasSubstr("length 8, open_rows 16, value 1, split, reordered, no state"));
  EXPECT_EQ(split.describe().stages.back().held_items, std::nullopt);
}

TEST(Pad, ItsHeaderMayPrecedeStagesOfSequences) {
  runtime runtime({.threads = 1});
  auto values = from(std::vector<std::vector<int>>{{1}, {2, 3}}) |
                flat_map([](std::vector<int> sequence) { return sequence; });
  EXPECT_THAT(collect(runtime, values), ElementsAre(1, 2, 3));
  auto sequences = from(std::vector<std::vector<int>>{{1}, {2, 3}}) |
                   map([](std::vector<int> sequence) { return sequence; });
  EXPECT_THAT(collect(runtime, sequences), ElementsAre(ElementsAre(1), ElementsAre(2, 3)));
}

}  // namespace lade::pad_test
