#include <lade/batch.hpp>
#include <lade/error.hpp>
#include <lade/io/formats/from_shards.hpp>
#include <lade/map.hpp>
#include <lade/merge.hpp>
#include <lade/shuffle.hpp>
#include <lade/state.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "../../support/pipelines.hpp"
#include "../../support/temp_dir.hpp"
#include "tar_bytes.hpp"

namespace lade::io {

using test::collect;
using test::tar_end;
using test::tar_file;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;
using testing::ThrowsMessage;
using testing_support::temp_dir;

static shards write_shards(const temp_dir& dir) {
  for (int i = 0; i < 6; ++i) {
    std::string bytes;
    for (int j = 0; j < i * 5 % 7; ++j)
      bytes += tar_file(std::to_string(i) + std::to_string(j) + ".txt", "content");
    dir.write(std::to_string(i) + ".tar", bytes + tar_end());
  }
  return shards(dir / "{0..5}.tar");  // of 0, 5, 3, 1, 6 and 4 samples
}

static std::string name_of_key(const sample& from) {
  return from.key().substr(from.key().rfind('/') + 1);
}

using groups = std::vector<std::vector<std::string>>;

static std::vector<std::string> joined(const groups& all) {
  std::vector<std::string> names;
  for (auto& each : all) names.insert(names.end(), each.begin(), each.end());
  return names;
}

static pipeline<std::vector<std::string>> in_batches(const pipeline<sample>& samples) {
  return samples | map(name_of_key, {.concurrency = 3}) | shuffle({.seed = 9, .window = 4}) |
         batch(2);
}

// Stopped after every number of batches, and resumed from each.
static void expect_exact(runtime& where, const pipeline<std::vector<std::string>>& what,
                         std::size_t samples) {
  auto whole = collect(where, what, {.epoch = 3});
  EXPECT_THAT(joined(whole), SizeIs(samples));
  for (std::size_t first = 1; first <= whole.size(); ++first) {
    auto begun = where.run(what, {.epoch = 3});
    groups got;
    while (got.size() < first) got.push_back(*begun.wait_next());
    auto saved = state_from_json(to_json(begun.state()));
    auto rest = collect(where, what, {.epoch = 3, .state = saved});
    got.insert(got.end(), rest.begin(), rest.end());
    EXPECT_EQ(got, whole) << first;
  }
}

TEST(FromShards, StatesAreExactBehindAWindowAndBatches) {
  temp_dir dir;
  runtime runtime({.threads = 3});
  auto all = write_shards(dir);
  expect_exact(runtime, in_batches(from_shards(all)), 19);
  expect_exact(runtime, in_batches(from_shards(all, {.shuffle = true, .seed = 7})), 19);
}

TEST(FromShards, RanksGetDifferentShardsAndEachItsOwnState) {
  temp_dir dir;
  runtime runtime({.threads = 3});
  auto all = write_shards(dir);
  std::vector<std::string> names;
  for (std::uint64_t rank = 0; rank < 2; ++rank) {
    auto samples =
        from_shards(all, {.shuffle = true, .seed = 7, .shard = {.rank = rank, .world = 2}});
    auto own = joined(collect(runtime, in_batches(samples), {.epoch = 3}));
    expect_exact(runtime, in_batches(samples), own.size());
    names.insert(names.end(), own.begin(), own.end());
  }
  std::ranges::sort(names);
  EXPECT_THAT(names, SizeIs(19));
  EXPECT_EQ(std::ranges::adjacent_find(names), names.end());
}

TEST(FromShards, SourcesOfPartsAreMerged) {
  temp_dir dir;
  runtime runtime({.threads = 3});
  auto all = write_shards(dir);
  std::vector<pipeline<sample>> parts;
  for (std::uint64_t part = 0; part < 3; ++part)
    parts.push_back(from_shards(all, {.shard = {.rank = part, .world = 3}}));
  expect_exact(runtime, in_batches(merge(parts)), 19);
}

TEST(FromShards, AResumedRunOpensNoShardThatIsComplete) {
  temp_dir dir;
  runtime runtime({.threads = 2});
  auto samples = from_shards(write_shards(dir));
  auto begun = runtime.run(samples);
  for (int i = 0; i < 6; ++i) begun.wait_next();
  auto saved = begun.state();
  std::filesystem::remove(dir / "1.tar");
  EXPECT_THAT(collect(runtime, samples, {.state = saved}), SizeIs(13));
  EXPECT_THAT([&] { collect(runtime, samples); }, ThrowsMessage<error>(HasSubstr("1.tar")));
}

TEST(FromShards, TheOrderOfShardsDependsOnTheEpoch) {
  temp_dir dir;
  runtime runtime({.threads = 2});
  auto samples = from_shards(write_shards(dir), {.shuffle = true, .seed = 7}) | map(name_of_key);
  auto first = collect(runtime, samples, {.epoch = 1});
  EXPECT_EQ(first, collect(runtime, samples, {.epoch = 1}));
  EXPECT_NE(first, collect(runtime, samples, {.epoch = 2}));
}

TEST(FromShards, ADamagedShardIsSkippedBehindItsGoodSamples) {
  temp_dir dir;
  runtime runtime({.threads = 2});
  auto all = write_shards(dir);
  dir.write("1.tar", tar_file("a.txt", "") + tar_file("b.txt", "") + tar_file("c.txt", ""));
  auto damaged = from_shards(all);
  EXPECT_THAT([&] { collect(runtime, damaged); },
              ThrowsMessage<error>(HasSubstr("1.tar: header at byte 1536")));
  auto samples = runtime.run(from_shards(all, {.on_error = on_error::skip}) | map(name_of_key));
  auto names = collect(samples);
  EXPECT_THAT(names, SizeIs(2 + 14));
  EXPECT_EQ(names[1], "b");
  EXPECT_THAT(samples.failures(), SizeIs(1));
  expect_exact(runtime, in_batches(from_shards(all, {.on_error = on_error::skip})), 16);
}

TEST(FromShards, AStateOfOtherShardsOrAnotherRankIsRefused) {
  temp_dir dir;
  runtime runtime({.threads = 2});
  auto all = write_shards(dir);
  auto begun = runtime.run(from_shards(all, {.shard = {.rank = 0, .world = 2}}));
  begun.wait_next();
  auto resumed = [&](const pipeline<sample>& samples) {
    collect(runtime, samples, {.state = begun.state()});
  };
  EXPECT_THAT([&] { resumed(from_shards(all, {.shard = {.rank = 1, .world = 2}})); },
              ThrowsMessage<error>(HasSubstr("rank 0 of 2")));
  EXPECT_THAT([&] { resumed(from_shards(all, {.seed = 1, .shard = {.rank = 0, .world = 3}})); },
              ThrowsMessage<error>(HasSubstr("rank 0 of 2")));
  shards others(dir / "{1..4}.tar");
  EXPECT_THAT([&] { resumed(from_shards(others, {.shard = {.rank = 0, .world = 2}})); },
              ThrowsMessage<error>(HasSubstr("data set")));
}

TEST(FromShards, OptionsThatCannotWorkAreRefused) {
  shards all("{0..2}.tar");
  EXPECT_THAT([&] { (void)from_shards(all, {.shard = {.rank = 0, .world = 4}}); },
              ThrowsMessage<error>(HasSubstr("rank 0 of 4 for 3 shards")));
  EXPECT_THROW((void)from_shards(all, {.shard = {.rank = 2, .world = 2}}), error);
  EXPECT_THROW((void)from_shards(all, {.read = {.chunk_bytes = 0}}), error);
}

}  // namespace lade::io
