#include <lade/error.hpp>
#include <lade/io/ranges.hpp>
#include <lade/runtime.hpp>
#include <lade/sync_wait.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <vector>

#include "../support/seed.hpp"

namespace lade::io::ranges_test {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;
using testing::UnorderedElementsAre;

static buffer numbered(std::size_t bytes) {
  buffer content(bytes);
  for (std::size_t i = 0; i < bytes; ++i) content.data()[i] = static_cast<std::byte>(i * 31 >> 3);
  return content;
}

// Notes the reads that reach it. `claims`: the size that it says to have, if that is not its own.
class noting_reader final : public byte_reader {
 public:
  explicit noting_reader(std::size_t bytes, std::uint64_t claims = 0)
      : content_(numbered(bytes)), size_(claims > 0 ? claims : bytes) {}

  const std::string& name() const noexcept override { return name_; }
  std::uint64_t size() const override { return size_; }
  task<std::size_t> read_at(std::span<std::byte> into, std::uint64_t offset) const override {
    {
      std::lock_guard lock(mutex_);
      reads_.emplace_back(offset, into.size());
    }
    if (offset >= content_.size()) co_return 0;
    auto rest = content_.bytes().subspan(offset);
    auto bytes = std::min(rest.size(), into.size());
    std::memcpy(into.data(), rest.data(), bytes);
    co_return bytes;
  }
  using byte_reader::read_at;

  using read_list = std::vector<std::pair<std::uint64_t, std::size_t>>;
  read_list reads() const {
    std::lock_guard lock(mutex_);
    return reads_;
  }
  std::string_view text(std::uint64_t offset, std::size_t bytes) const {
    return content_.text().substr(offset, bytes);
  }

 private:
  buffer content_;
  std::uint64_t size_;
  std::string name_ = "object";
  mutable std::mutex mutex_;
  mutable read_list reads_;  // guarded by mutex_
};

static std::vector<buffer> ranges_of(std::shared_ptr<const byte_reader> from,
                                     std::vector<object_range> ranges, ranges_options options) {
  runtime runtime({.threads = 2});
  return sync_wait(runtime, read_ranges(std::move(from), std::move(ranges), options));
}

TEST(Ranges, NeighboursAreReadAtOnceAndComeInTheOrderAskedFor) {
  auto from = std::make_shared<const noting_reader>(10'000);
  auto got = ranges_of(from, {{5000, 10}, {100, 50}, {0, 90}, {5020, 5}},
                       {.gap_bytes = 10, .most_bytes = 1000});
  EXPECT_THAT(from->reads(), UnorderedElementsAre(std::pair(0, 150), std::pair(5000, 25)));
  EXPECT_EQ(got[0].text(), from->text(5000, 10));
  EXPECT_EQ(got[1].text(), from->text(100, 50));
  EXPECT_EQ(got[2].text(), from->text(0, 90));
  EXPECT_EQ(got[3].text(), from->text(5020, 5));
  EXPECT_EQ(got[2].data() + 100, got[1].data()) << "views of one memory";
}

TEST(Ranges, AreNotMergedBeyondTheGapAndTheSize) {
  auto from = std::make_shared<const noting_reader>(10'000);
  (void)ranges_of(from, {{0, 10}, {21, 10}}, {.gap_bytes = 10, .most_bytes = 1000});
  EXPECT_THAT(from->reads(), UnorderedElementsAre(std::pair(0, 10), std::pair(21, 10)));
  from = std::make_shared<const noting_reader>(10'000);
  (void)ranges_of(from, {{0, 60}, {60, 60}, {120, 10}}, {.gap_bytes = 10, .most_bytes = 100});
  EXPECT_THAT(from->reads(), UnorderedElementsAre(std::pair(0, 60), std::pair(60, 70)));
}

TEST(Ranges, OutsideOfTheObjectAreErrorsBeforeAnythingIsRead) {
  auto from = std::make_shared<const noting_reader>(100);
  EXPECT_THAT([&] { (void)ranges_of(from, {{0, 10}, {95, 6}}, {}); },
              ThrowsMessage<error>("read 6 bytes at 95 of object: it has 100 bytes"));
  EXPECT_THAT([&] { (void)ranges_of(from, {{~0ull, ~0ull}}, {}); },
              ThrowsMessage<error>(HasSubstr("it has 100 bytes")));
  EXPECT_THAT([&] { (void)ranges_of(from, {{0, 1}}, {.concurrency = 0}); },
              ThrowsMessage<error>(HasSubstr("concurrency")));
  EXPECT_THAT(from->reads(), ElementsAre());
  EXPECT_THAT(ranges_of(from, {}, {}), ElementsAre());
}

TEST(Ranges, OfAnObjectThatEndsBeforeItsSizeAreErrors) {
  auto from = std::make_shared<const noting_reader>(100, 200);
  EXPECT_THAT([&] { (void)ranges_of(from, {{90, 20}, {0, 5}}, {.gap_bytes = 0}); },
              ThrowsMessage<error>("read 20 bytes at 90 of object: it ended after 10"));
}

// The plain way: each range by itself.
TEST(Ranges, RandomRangesHaveTheBytesOfTheObject) {
  const auto seed = test::new_seed();
  SCOPED_TRACE("LADE_SEED=" + std::to_string(seed));
  std::mt19937_64 random(seed);
  for (int round = 0; round < 100; ++round) {
    auto from = std::make_shared<const noting_reader>(1 + random() % 5000);
    std::vector<object_range> ranges(random() % 30);
    for (auto& each : ranges) {
      each.offset = random() % (from->size() + 1);
      each.bytes = random() % (from->size() - each.offset + 1);
      if (random() % 2) each.bytes = std::min<std::uint64_t>(each.bytes, 20);
    }
    auto got = ranges_of(from, ranges,
                         {.gap_bytes = random() % 100,
                          .most_bytes = random() % 2000,
                          .concurrency = 1 + static_cast<unsigned>(random() % 9)});
    ASSERT_EQ(got.size(), ranges.size());
    for (std::size_t i = 0; i < ranges.size(); ++i)
      ASSERT_EQ(got[i].text(), from->text(ranges[i].offset, ranges[i].bytes));
    EXPECT_LE(from->reads().size(), ranges.size());
  }
}

static task<std::string> filled(std::shared_ptr<const byte_reader> from, std::uint64_t offset,
                                std::size_t bytes, parts_options options) {
  buffer into(bytes);
  co_await read_in_parts(std::move(from), into.bytes(), offset, options);
  co_return std::string(into.text());
}

TEST(Ranges, PartsOfALargeObjectAreReadSideBySide) {
  auto from = std::make_shared<const noting_reader>(1000);
  runtime runtime({.threads = 2});
  parts_options options{.part_bytes = 300, .concurrency = 2};
  EXPECT_EQ(sync_wait(runtime, filled(from, 50, 950, options)), from->text(50, 950));
  EXPECT_THAT(from->reads(), UnorderedElementsAre(std::pair(50, 300), std::pair(350, 300),
                                                  std::pair(650, 300), std::pair(950, 50)));
  EXPECT_EQ(sync_wait(runtime, filled(from, 50, 0, options)), "");
  EXPECT_THAT([&] { (void)sync_wait(runtime, filled(from, 900, 101, options)); },
              ThrowsMessage<error>("read 101 bytes at 900 of object: it ended after 100"));
  options.part_bytes = 0;
  EXPECT_THAT([&] { (void)sync_wait(runtime, filled(from, 0, 1, options)); },
              ThrowsMessage<error>(HasSubstr("part_bytes")));
}

static task<std::vector<std::string>> streamed(std::shared_ptr<const byte_reader> from,
                                               std::uint64_t offset, parts_options options) {
  std::vector<std::string> parts;
  auto stream = stream_in_parts(std::move(from), offset, options);
  while (auto* part = co_await stream.next()) parts.emplace_back(part->text());
  co_return parts;
}

TEST(Ranges, AStreamOfPartsIsTheObjectInOrder) {
  auto from = std::make_shared<const noting_reader>(1000);
  runtime runtime({.threads = 2});
  auto parts = sync_wait(runtime, streamed(from, 10, {.part_bytes = 100, .concurrency = 4}));
  ASSERT_EQ(parts.size(), 10u);
  std::string all;
  for (auto& each : parts) all += each;
  EXPECT_EQ(all, from->text(10, 990));
  EXPECT_THAT(sync_wait(runtime, streamed(from, 1000, {})), ElementsAre());
  EXPECT_THAT([&] { (void)sync_wait(runtime, streamed(from, 1001, {})); },
              ThrowsMessage<error>(HasSubstr("it has 1000 bytes")));
}

}  // namespace lade::io::ranges_test
