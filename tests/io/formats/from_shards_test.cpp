#include <lade/batch.hpp>
#include <lade/cut.hpp>
#include <lade/elastic.hpp>
#include <lade/equal_steps.hpp>
#include <lade/error.hpp>
#include <lade/from.hpp>
#include <lade/io/formats/from_shards.hpp>
#include <lade/io/store.hpp>
#include <lade/map.hpp>
#include <lade/merge.hpp>
#include <lade/random.hpp>
#include <lade/shard.hpp>
#include <lade/shuffle.hpp>
#include <lade/state.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "../../support/counted_store.hpp"
#include "../../support/pipelines.hpp"
#include "../../support/reactors.hpp"
#include "../../support/resume.hpp"
#include "../../support/temp_dir.hpp"
#include "tar_bytes.hpp"

namespace lade::io::from_shards_test {

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

// Stopped after every number of batches, and resumed from each, by another pipeline of the same.
static void expect_exact(runtime& where, const pipeline<std::vector<std::string>>& what,
                         const pipeline<std::vector<std::string>>& again, std::size_t samples) {
  auto whole = collect(where, what, {.epoch = 3});
  EXPECT_THAT(joined(whole), SizeIs(samples));
  for (std::size_t first = 1; first <= whole.size(); ++first) {
    auto interrupted = where.run(what, {.epoch = 3});
    groups got;
    while (got.size() < first) got.push_back(*interrupted.wait_next());
    auto saved = state_from_json(to_json(interrupted.state()));
    auto rest = collect(where, again, {.epoch = 3, .state = saved});
    got.insert(got.end(), rest.begin(), rest.end());
    EXPECT_EQ(got, whole) << first;
  }
}

static void expect_exact(runtime& where, const pipeline<std::vector<std::string>>& what,
                         std::size_t samples) {
  expect_exact(where, what, what, samples);
}

TEST(FromShards, StatesAreExactBehindAWindowAndBatches) {
  temp_dir dir;
  runtime runtime({.threads = 3});
  auto all = write_shards(dir);
  expect_exact(runtime, in_batches(from_shards(all)), 19);
  expect_exact(runtime, in_batches(from_shards(all, {.shuffle = true, .seed = 7})), 19);
}

TEST(FromShards, OrderAndStatesAreTheSameForAnyConcurrency) {
  temp_dir dir;
  runtime runtime({.threads = 3});
  auto all = write_shards(dir);
  auto reading = [&](unsigned concurrency) {
    from_shards_options options{.shuffle = true, .seed = 7};
    options.concurrency = concurrency;
    options.buffer = concurrency / 2;
    return in_batches(from_shards(all, options));
  };
  for (unsigned concurrency : {2u, 3u, 16u}) {
    EXPECT_EQ(collect(runtime, reading(concurrency)), collect(runtime, reading(1)));
    expect_exact(runtime, reading(1), reading(concurrency), 19);
    expect_exact(runtime, reading(concurrency), reading(1), 19);
  }
}

TEST(FromShards, RanksReadDifferentShardsAndSaveSeparateStates) {
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

TEST(FromShards, EqualStepsReadTheShardsAgain) {
  temp_dir dir;
  auto all = write_shards(dir);
  runtime runtime({.threads = 2});
  for (unsigned world : {1u, 2u}) {
    from_shards_options how{.shard = {.rank = world - 1, .world = world},
                            .concurrency = 2 * world - 1};
    auto own = collect(runtime, in_batches(from_shards(all, how)), {.epoch = 3});
    auto names_after = [&](std::size_t count) {
      auto make = [&] {
        return in_batches(from_shards(all, how)) | equal_steps({.steps = own.size() + 3});
      };
      groups names;
      for (auto& each : test::with_interruptions(runtime, make, count, {.epoch = 3}))
        names.push_back(*each);
      return names;
    };
    auto expected = own;
    expected.insert(expected.end(), own.begin(), own.begin() + 3);
    for (std::size_t count = 1; count < expected.size() + 2; ++count)
      EXPECT_EQ(names_after(count), expected) << count;
  }
}

TEST(FromShards, GlobalBatchesDependOnTheNumberOfRanks) {
  temp_dir dir;
  auto mine = from_shards(write_shards(dir), {.shard = {.rank = 1, .world = 2}}) | batch(2);
  EXPECT_THAT(
      [&] { require_elastic(mine.describe()); },
      ThrowsMessage<error>("require_elastic: from_shards: it assigns whole shards to ranks"));
}

TEST(FromShards, SourcesOfPartsAreMerged) {
  temp_dir dir;
  runtime runtime({.threads = 3});
  write_shards(dir);
  std::vector<pipeline<sample>> parts;
  for (auto* part : {"{0..1}.tar", "{2..3}.tar", "{4..5}.tar"})
    parts.push_back(from_shards(shards(dir / part), {.concurrency = 2}));
  expect_exact(runtime, in_batches(merge(parts)), 19);
}

TEST(FromShards, AResumedRunOpensNoShardThatIsComplete) {
  temp_dir dir;
  runtime runtime({.threads = 2});
  auto samples = from_shards(write_shards(dir));
  auto interrupted = runtime.run(samples);
  for (int i = 0; i < 6; ++i) interrupted.wait_next();
  auto saved = interrupted.state();
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
  auto interrupted = runtime.run(from_shards(all, {.shard = {.rank = 0, .world = 2}}));
  interrupted.wait_next();
  auto resumed = [&](const pipeline<sample>& samples) {
    collect(runtime, samples, {.state = interrupted.state()});
  };
  auto needs_a_merge = ThrowsMessage<error>(HasSubstr("merge the states of all ranks"));
  EXPECT_THAT([&] { resumed(from_shards(all, {.shard = {.rank = 1, .world = 2}})); },
              needs_a_merge);
  EXPECT_THAT([&] { resumed(from_shards(all, {.seed = 1, .shard = {.rank = 0, .world = 3}})); },
              needs_a_merge);
  EXPECT_THAT(
      [&] { resumed(from_shards(all, {.shuffle = true, .shard = {.rank = 0, .world = 2}})); },
      ThrowsMessage<error>(HasSubstr("shards in their order, this source has them in the order 6 "
                                     "shards shuffled by 0")));
  shards others(dir / "{1..4}.tar");
  EXPECT_THAT([&] { resumed(from_shards(others, {.shard = {.rank = 0, .world = 2}})); },
              ThrowsMessage<error>(HasSubstr("data set")));
}

// Some shards with random numbers of samples, and the names of all of these.
class random_shards {
 public:
  explicit random_shards(random& draw) : count_(6 + draw.below(7)) {
    for (std::uint64_t i = 0; i < count_; ++i) write(i, draw.below(9));
    std::ranges::sort(names_);
    repair();
  }

  shards all() const { return shards(dir_ / "{0.." + std::to_string(count_ - 1) + "}.tar"); }
  const std::vector<std::string>& names() const noexcept { return names_; }

  // Cuts one of them somewhere, and makes all whole again.
  void damage(random& draw) const {
    auto shard = draw.below(count_);
    auto& whole = archives_[shard];
    dir_.write(std::to_string(shard) + ".tar", whole.substr(0, draw.below(whole.size())));
  }
  void repair() const {
    for (std::uint64_t i = 0; i < count_; ++i) dir_.write(std::to_string(i) + ".tar", archives_[i]);
  }

 private:
  void write(std::uint64_t shard, std::uint64_t samples) {
    std::string bytes;
    for (std::uint64_t i = 0; i < samples; ++i) {
      names_.push_back(std::to_string(shard) + "-" + std::to_string(i));
      bytes += tar_file(names_.back() + ".txt", "content");
    }
    archives_.push_back(bytes + tar_end());
  }

  temp_dir dir_;
  std::uint64_t count_;
  std::vector<std::string> archives_;
  std::vector<std::string> names_;
};

// A job of several ranks that is killed at random steps, and resumes with other numbers of ranks.
// Shards that fail are skipped.
class killed_job {
 public:
  killed_job(runtime& where, random& draw, const shards& all)
      : runtime_(where), draw_(draw), all_(all), shuffle_(draw.below(2) == 1), seed_(draw()) {}

  // Has each of some ranks make up to `steps` steps, killed now and then, and merges their states.
  void go_on(std::uint64_t world, std::uint64_t steps) {
    std::vector<state> ranks;
    for (std::uint64_t rank = 0; rank < world; ++rank) {
      run_options next{.epoch = 3, .state = merged_};
      for (auto runs = 1 + draw_.below(3); runs > 0; --runs)
        take({.rank = rank, .world = world}, 1 + draw_.below(steps), next);
      ranks.push_back(*next.state);
    }
    merged_ = state_from_json(to_json(merge(ranks)));
  }

  void finish(std::uint64_t world) {
    for (std::uint64_t rank = 0; rank < world; ++rank) {
      run_options next{.epoch = 3, .state = merged_};
      take({.rank = rank, .world = world}, 1000, next);
    }
  }

  std::vector<std::string> delivered() const {
    auto names = joined(batches_);
    std::ranges::sort(names);
    return names;
  }

 private:
  void take(const shard_options& part, std::size_t steps, run_options& next) {
    from_shards_options options{.shuffle = shuffle_, .seed = seed_, .shard = part};
    options.concurrency = static_cast<unsigned>(1 + draw_.below(4));
    options.buffer = draw_.below(4);
    options.on_error = on_error::skip;
    auto samples = from_shards(all_, options) | map(name_of_key, {.concurrency = 2}) |
                   shuffle({.seed = 9, .window = 4});
    test::take_part(runtime_, samples | batch(1 + draw_.below(3)), steps, next, batches_);
  }

  runtime& runtime_;
  random& draw_;
  const shards& all_;
  bool shuffle_;
  std::uint64_t seed_;
  std::optional<state> merged_;
  groups batches_;
};

class FromShardsOnReactors : public testing_support::ReactorTest {};

TEST_P(FromShardsOnReactors, AnyNumberOfRanksResumesFromMergedStates) {
  auto seed = test::new_seed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  random draw(seed);
  runtime runtime(options());
  for (int i = 0; i < 20; ++i) {
    random_shards written(draw);
    auto all = written.all();
    killed_job job(runtime, draw, all);
    for (int restart = 0; restart < 3; ++restart) {
      if (draw.below(2)) written.damage(draw);
      job.go_on(1 + draw.below(6), 4);
      written.repair();
    }
    job.finish(1 + draw.below(6));
    ASSERT_EQ(job.delivered(), written.names()) << "job " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(, FromShardsOnReactors,
                         testing::Values(reactor_kind::fallback, reactor_kind::io_uring),
                         testing_support::reactor_name);

// The states of two ranks after their first sample.
static std::vector<state> states_of_two(runtime& where, const shards& all,
                                        from_shards_options options, std::uint64_t epoch = 0) {
  std::vector<state> ranks;
  for (std::uint64_t rank = 0; rank < 2; ++rank) {
    options.shard = {.rank = rank, .world = 2};
    auto interrupted = where.run(from_shards(all, options), {.epoch = epoch});
    interrupted.wait_next();
    ranks.push_back(interrupted.state());
  }
  return ranks;
}

TEST(FromShards, MergingNeedsTheStatesOfAllRanksOfOneRun) {
  temp_dir dir;
  runtime runtime({.threads = 2});
  auto all = write_shards(dir);
  auto ranks = states_of_two(runtime, all, {.shuffle = true, .seed = 7}, 1);
  EXPECT_NO_THROW(merge(ranks));
  auto merging = [&](const shards& from, const from_shards_options& options, std::uint64_t epoch) {
    std::vector mixed{ranks[0], states_of_two(runtime, from, options, epoch)[1]};
    return [mixed] { merge(mixed); };
  };
  auto says = [](const char* why) { return ThrowsMessage<error>(HasSubstr(why)); };
  EXPECT_THAT(merging(all, {.shuffle = true, .seed = 7}, 2), says("they differ in the epoch"));
  EXPECT_THAT(merging(all, {.shuffle = true, .seed = 8}, 1),
              says("they differ in the order of the source"));
  EXPECT_THAT(merging(shards(dir / "{1..5}.tar"), {.shuffle = true, .seed = 7}, 1),
              says("they differ in the data set"));
  EXPECT_THAT([&] { merge(std::span(ranks).first(1)); }, says("2 ranks are needed, each once"));
}

TEST(FromShards, ShardsAndListsAreAssignedToRanksSeparately) {
  temp_dir dir;
  runtime runtime({.threads = 2});
  auto all = write_shards(dir);
  std::vector<std::string> listed;
  for (int i = 100; i < 120; ++i) listed.push_back(std::to_string(i));
  auto of_rank = [&](const shard_options& part) {
    return merge(std::vector{from_shards(all, {.shard = part}) | map(name_of_key),
                             from(listed) | shard(part)});
  };
  std::vector<std::string> names;
  std::vector<state> ranks;
  for (std::uint64_t rank = 0; rank < 3; ++rank) {
    run_options next;
    test::take_part(runtime, of_rank({.rank = rank, .world = 3}), 3 + rank, next, names);
    ranks.push_back(*next.state);
  }
  auto rest = collect(runtime, of_rank({}), {.state = merge(ranks)});
  names.insert(names.end(), rest.begin(), rest.end());
  std::ranges::sort(names);
  EXPECT_EQ(std::ranges::adjacent_find(names), names.end());
  EXPECT_THAT(names, SizeIs(19 + 20));
}

// A shard that fails on one rank, and is intact when another number of ranks resumes.
TEST(FromShards, ResumedRanksDeliverWhatASkippedShardLacked) {
  temp_dir dir;
  runtime runtime({.threads = 2});
  auto all = write_shards(dir);
  std::string good;
  for (auto name : {"20", "21", "22"}) good += tar_file(name + std::string(".txt"), "content");
  for (unsigned concurrency : {1u, 3u}) {
    dir.write("2.tar", good);
    std::vector<std::string> names;
    auto take = [&](std::uint64_t rank, std::uint64_t world, std::optional<state> from) {
      auto samples = from_shards(all, {.shard = {.rank = rank, .world = world},
                                       .concurrency = concurrency,
                                       .on_error = on_error::skip});
      auto interrupted = runtime.run(samples | map(name_of_key), {.state = from});
      auto some = collect(interrupted);
      names.insert(names.end(), some.begin(), some.end());
      return interrupted.state();
    };
    auto merged = merge(std::vector{take(0, 2, {}), take(1, 2, {})});
    EXPECT_THAT(names, SizeIs(18));  // "22" may have had more fields
    dir.write("2.tar", good + tar_file("23.txt", "content") + tar_end());
    names.clear();
    for (std::uint64_t rank = 0; rank < 3; ++rank) take(rank, 3, merged);
    EXPECT_THAT(names, ElementsAre("22", "23"));
  }
}

TEST(FromShards, TheNextShardsAreOpenedAheadAndNoMore) {
  runtime runtime({.threads = 2});
  auto store = std::make_shared<test::counted_store>();
  std::vector<std::string> names;
  for (int i = 0; i < 20; ++i) {
    names.push_back("counted://" + std::to_string(i) + ".tar");
    store->put(names.back(), tar_file("a.txt", "") + tar_file("b.txt", "") + tar_end());
  }
  mount("counted://", store);
  auto samples =
      runtime.run(from_shards(shards(names), {.concurrency = 3, .buffer = 1}), {.ready = 1});
  samples.wait_next();
  test::wait_until([&] { return store->count() >= 3; });
  EXPECT_LE(store->count(), 6u);
  EXPECT_THAT(collect(samples), SizeIs(39));
  EXPECT_EQ(store->count(), 20u);
  unmount("counted://");
}

TEST(FromShards, ReadAheadLeavesMemoryForTheNextShard) {
  temp_dir dir;
  runtime runtime({.threads = 2, .memory_bytes = std::size_t{1} << 18});
  std::string bytes;
  for (int i = 0; i < 10; ++i)
    bytes += tar_file(std::to_string(i) + ".bin", std::string(100'000, 'x'));
  for (int i = 0; i < 8; ++i) dir.write(std::to_string(i) + ".tar", bytes + tar_end());
  auto samples = from_shards(shards(dir / "{0..7}.tar"),
                             {.concurrency = 8, .buffer = 64, .read = {.chunk_bytes = 100'000}});
  auto names = collect(runtime, samples | shuffle({.window = 8}) | map(name_of_key));
  EXPECT_THAT(names, SizeIs(80));
}

TEST(FromShards, AFailedShardDeliversEarlierSamplesFirst) {
  temp_dir dir;
  runtime runtime({.threads = 2});
  auto all = write_shards(dir);
  std::filesystem::remove(dir / "3.tar");
  auto samples = runtime.run(from_shards(all, {.concurrency = 4}) | map(name_of_key));
  std::vector<std::string> names;
  EXPECT_THAT(
      [&] {
        while (auto name = samples.wait_next()) names.push_back(*name);
      },
      ThrowsMessage<error>(HasSubstr("3.tar: No such file")));
  EXPECT_THAT(names, SizeIs(8));
}

TEST(FromShards, AStopAmidShardsThatAreReadAheadIsNoFailure) {
  temp_dir dir;
  runtime runtime({.threads = 2});
  auto all = write_shards(dir);
  for (int i = 0; i < 50; ++i) {
    auto samples = runtime.run(from_shards(all, {.concurrency = 4, .buffer = 1}) | take(2));
    EXPECT_THAT(collect(samples), SizeIs(2));
    EXPECT_THAT(samples.failures(), testing::IsEmpty());
  }
}

TEST(FromShards, OptionsThatCannotWorkAreRefused) {
  shards all("{0..2}.tar");
  EXPECT_THAT([&] { (void)from_shards(all, {.shard = {.rank = 0, .world = 4}}); },
              ThrowsMessage<error>(HasSubstr("rank 0 of 4 for 3 shards")));
  EXPECT_THROW((void)from_shards(all, {.shard = {.rank = 2, .world = 2}}), error);
  EXPECT_THROW((void)from_shards(all, {.read = {.chunk_bytes = 0}}), error);
  EXPECT_THAT([&] { (void)from_shards(all, {.concurrency = 0}); },
              ThrowsMessage<error>(HasSubstr("from_shards: concurrency is 0")));
  EXPECT_THAT([&] { (void)from_shards(all, {.buffer = std::size_t{1} << 40}); },
              ThrowsMessage<error>(HasSubstr("from_shards: buffer")));
}

}  // namespace lade::io::from_shards_test
