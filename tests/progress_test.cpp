#include <lade/cut.hpp>
#include <lade/detail/progress.hpp>
#include <lade/error.hpp>
#include <lade/from.hpp>
#include <lade/map.hpp>
#include <lade/route.hpp>
#include <lade/run.hpp>
#include <lade/runtime.hpp>
#include <lade/shard.hpp>

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <optional>

#include <malloc.h>

namespace lade {

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

TEST(Progress, OfARouteOfWhichAPathHasEndedTakesConstantMemory) {
  auto odd = [](int i) { return i % 2; };
  EXPECT_LT(growth(endless() | route(odd, skip(0), take(2))), 100'000u);
}

}  // namespace lade
