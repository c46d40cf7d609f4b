#include <lade/cut.hpp>
#include <lade/detail/pipeline/progress.hpp>
#include <lade/error.hpp>
#include <lade/from.hpp>
#include <lade/lineage.hpp>
#include <lade/map.hpp>
#include <lade/route.hpp>
#include <lade/run.hpp>
#include <lade/runtime.hpp>
#include <lade/shard.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <malloc.h>

namespace lade::progress_test {

static std::size_t bytes_on_the_heap() {
  auto now = mallinfo2();
  return now.uordblks + now.hblkhd;
}

TEST(Progress, KeepsNothingOfARunThatHasNoState) {
  detail::progress none(std::nullopt);
  none.refuse("a stage of the test");
  auto before = bytes_on_the_heap();
  for (std::uint64_t i = 0; i < 100'000; ++i) none.note(lineage(2 * i));
  EXPECT_LT(bytes_on_the_heap(), before + 10'000);
}

TEST(Progress, ForgetsWhatItHasKeptWhenAStateBecomesImpossible) {
  auto before = bytes_on_the_heap();
  detail::progress some(std::nullopt);
  for (std::uint64_t i = 0; i < 10'000; ++i) some.note(lineage(2 * i));
  some.refuse("a stage of the test");
  EXPECT_LT(bytes_on_the_heap(), before + 10'000);
}

// How much more memory there is in use at the 25,000th item than at the 5,000th.
static std::size_t growth(const pipeline<int>& items) {
  runtime runtime({.threads = 1});
  auto run = runtime.run(items);
  for (int i = 0; i < 5'000; ++i) run.wait_next();
  auto before = bytes_on_the_heap();
  for (int i = 0; i < 20'000; ++i) run.wait_next();
  EXPECT_THROW(run.state(), error);
  auto now = bytes_on_the_heap();
  return now > before ? now - before : 0;
}

static pipeline<int> endless() {
  return from([i = 0]() mutable -> std::optional<int> { return i++; });
}

TEST(Progress, OfAShardedStreamTakesConstantMemory) {
  EXPECT_LT(growth(endless() | shard({.rank = 1, .world = 3})), 100'000u);
}

// Each item that finds its path ended refuses a state anew: to forget then is enough.
TEST(Progress, OfARouteWithAnEndedPathTakesConstantMemory) {
  auto odd = [](int i) { return i % 2; };
  EXPECT_LT(growth(endless() | route(odd, skip(0), take(2))), 100'000u);
}

// Shards of 10 positions each, from position 100 on.
TEST(Progress, OfAShardThatHasBeenDeliveredIsOneRange) {
  for (std::uint64_t world : {1u, 2u}) {
    detail::progress some(std::nullopt);
    some.begin(std::vector<std::string>{"source"});
    some.begin(detail::assignment{.begin = 100, .world = world, .first = 100, .shard_span = 10});
    some.settle();
    auto note = [&](std::initializer_list<lineage::range> positions) {
      lineage item;
      for (auto& range : positions) item.add(range);
      some.note(item);
    };
    note({{101, 101}, {109, 109}});
    note({{122, 122}, {129, 129}, {130, 130}});
    note({{100, 100}, {110, 112}, {119, 121}});
    auto saved = some.now();
    EXPECT_EQ(to_string(world == 1 ? saved.delivered : saved.own), "100-130");
    EXPECT_TRUE((world == 1 ? saved.own : saved.delivered).empty());
  }
}

// A run over two listings: the first starts at position 0, the second at position 100.
struct listing_run {
  explicit listing_run(std::optional<state> from = {}, bool other_data = false)
      : is_of(std::move(from), false, other_data) {
    is_of.begin(std::vector<std::string>{"source"});
    is_of.settle();
  }

  // Lists names from the source that begins there.
  void list(std::uint64_t begin, std::initializer_list<const char*> names) {
    is_of.begin(detail::assignment{.begin = begin});
    detail::listing_log log(is_of, begin, true);
    for (auto* name : names) log.add(name);
  }

  detail::progress is_of;
};

TEST(Progress, IsOfTheListingOfTheStateUntilThatHasBeenCompared) {
  listing_run first;
  first.list(0, {"a", "b", "c"});
  auto saved = first.is_of.now().sources.at(0);
  for (auto other : {false, true}) {
    listing_run rest(first.is_of.now());
    if (other)
      rest.list(0, {"x", "y"});
    else
      rest.list(0, {"a", "b"});
    auto early = rest.is_of.now().sources.at(0);
    EXPECT_EQ(early.identity, saved.identity);
    EXPECT_EQ(early.listed, 3u);
    EXPECT_THROW(rest.list(0, {"x", "y", "z"}), error);
    EXPECT_EQ(rest.is_of.now().sources.at(0).identity, saved.identity);
    rest.list(0, {"a", "b", "c", "d"});
    EXPECT_EQ(rest.is_of.now().sources.at(0).listed, 4u);
  }
}

TEST(Progress, IsOfTheListingOfTheStateWhenTheSourceBegins) {
  listing_run first;
  first.list(0, {"a", "b", "c"});
  auto saved = first.is_of.now().sources.at(0);
  listing_run rest(first.is_of.now());
  rest.is_of.begin(detail::assignment{});
  auto early = rest.is_of.now().sources.at(0);
  EXPECT_EQ(early.identity, saved.identity);
  EXPECT_EQ(early.listed, 3u);
}

TEST(Progress, OfARefusedRunIsTheStateItWasToResumeFrom) {
  listing_run first;
  first.is_of.begin(detail::assignment{.items = 9, .identity = "May"});
  first.is_of.note(lineage(0));
  auto saved = first.is_of.now();
  listing_run others(saved);
  EXPECT_THROW(others.is_of.begin(detail::assignment{.items = 9, .identity = "June"}), error);
  EXPECT_EQ(to_json(others.is_of.now()), to_json(saved));
  detail::progress stages(saved);
  stages.begin(detail::assignment{.items = 9, .identity = "May"});
  EXPECT_THROW(stages.begin(std::vector<std::string>{"source", "map"}), error);
  stages.settle();
  EXPECT_EQ(to_json(stages.now()), to_json(saved));
}

TEST(Progress, RecordsWholeItemsBesideParts) {
  detail::progress some(std::nullopt);
  some.begin(std::vector<std::string>{"source"});
  some.settle();
  some.begin(detail::assignment{.items = 9});
  some.expect_parts();
  some.note(lineage(0));
  detail::part_lineage parts(lineage(1), 0);
  some.note(parts.next());
  EXPECT_EQ(some.now().parts, 1u);
  some.note(lineage(2));
  some.note(lineage(3));
  auto saved = some.now();
  EXPECT_EQ(to_string(saved.delivered), "0-3");
  EXPECT_EQ(saved.parts, 0u);
  EXPECT_TRUE(saved.open.empty());
}

TEST(Progress, KeepsTheListingOfASourceThatHasNotStarted) {
  listing_run first;
  first.list(0, {"a", "b"});
  first.list(100, {"c", "d", "e"});
  auto saved = first.is_of.now();
  listing_run rest(saved);
  rest.list(0, {"a", "b"});
  auto early = rest.is_of.now();
  ASSERT_EQ(early.sources.size(), 2u);
  EXPECT_EQ(early.sources[1].identity, saved.sources[1].identity);
  EXPECT_EQ(early.sources[1].listed, 3u);
  listing_run other(saved, true);
  other.list(0, {"x"});
  EXPECT_EQ(other.is_of.now().sources.size(), 1u);
}

TEST(Progress, OfAListingIsRefusedWhereNoNamesAreListed) {
  listing_run first;
  first.list(0, {"a", "b"});
  listing_run rest(first.is_of.now());
  rest.is_of.begin(detail::assignment{});
  EXPECT_THAT([&] { detail::listing_log(rest.is_of, 0, false); },
              testing::ThrowsMessage<error>(testing::HasSubstr("the source lists no names")));
  EXPECT_THAT([&] { rest.is_of.begin(detail::assignment{.identity = "numbers of May"}); },
              testing::ThrowsMessage<error>(testing::HasSubstr("the source is of the data set")));
}

}  // namespace lade::progress_test
