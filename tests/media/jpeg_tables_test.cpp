#include "../../media/jpeg_tables.hpp"
#include "../support/seed.hpp"
#include "jpeg_maker.hpp"
#include "jpeg_oracle.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace lade::media::jpeg_tables_test {

// So many unused codes of each kind are kept.
constexpr int most_kept = 8;

// A Huffman code and its bytes.
class coded {
 public:
  coded(int length, std::vector<std::uint8_t> symbols) : symbols_(std::move(symbols)) {
    counts_[std::size_t(length - 1)] = static_cast<std::uint8_t>(symbols_.size());
  }
  huffman_code view() const { return {.counts = counts_, .symbols = symbols_}; }

 private:
  std::array<std::uint8_t, 16> counts_{};
  std::vector<std::uint8_t> symbols_;
};

// Codes that differ for each number up to 100, for DC as for AC.
static coded code_number(int number) {
  return {3, {static_cast<std::uint8_t>(number % 10), static_cast<std::uint8_t>(number / 10), 3}};
}

// Two symbols of one bit each, which leaves none for the code of ones.
static coded no_code() { return {1, {1, 2}}; }

TEST(JpegTableCache, EqualCodesHaveOneTable) {
  jpeg_table_cache tables;
  const auto code = code_number(1), same = code_number(1), other = code_number(2);
  const auto dc = tables.dc(code.view());
  EXPECT_EQ(tables.dc(same.view()), dc);
  EXPECT_NE(tables.dc(other.view()), dc);
  const auto ac = tables.ac(code.view(), false);
  EXPECT_EQ(tables.ac(same.view(), false), ac);
  EXPECT_NE(tables.ac(other.view(), false), ac);
}

TEST(JpegTableCache, ATableThatAnImageHoldsIsNotEvicted) {
  jpeg_table_cache tables;
  const auto dc = tables.dc(code_number(0).view());
  const auto ac = tables.ac(code_number(0).view(), true);
  const auto dc_before = dc->entries, ac_before = ac->entries;
  for (int i = 1; i < 5 * most_kept; ++i) {
    EXPECT_NE(tables.dc(code_number(i).view()), dc);
    EXPECT_NE(tables.ac(code_number(i).view(), true), ac);
  }
  EXPECT_EQ(dc->entries, dc_before);
  EXPECT_EQ(ac->entries, ac_before);
  EXPECT_EQ(tables.dc(code_number(0).view()), dc);
  EXPECT_EQ(tables.ac(code_number(0).view(), true), ac);
}

TEST(JpegTableCache, ImagesMayHoldMoreTablesThanAreKept) {
  jpeg_table_cache tables;
  std::vector<std::shared_ptr<const ac_table>> held;
  for (int i = 0; i < 3 * most_kept; ++i) held.push_back(tables.ac(code_number(i).view(), true));
  for (int i = 0; i < 3 * most_kept; ++i) {
    ac_table alone;
    ASSERT_TRUE(alone.build(code_number(i).view()));
    alone.pair_symbols();
    EXPECT_EQ(held[std::size_t(i)]->entries, alone.entries) << i;
    EXPECT_EQ(tables.ac(code_number(i).view(), true), held[std::size_t(i)]) << i;
  }
}

// A code that the cache has had all the time is paired when it is used.
static bool is_kept(const jpeg_table_cache& tables, int number) {
  return jpeg_table_cache(tables).ac(code_number(number).view(), false)->paired;
}

TEST(JpegTableCache, OfUnusedTablesThoseAreKeptThatWereUsedLast) {
  jpeg_table_cache tables;
  for (int i = 0; i < most_kept; ++i) tables.ac(code_number(i).view(), false);
  tables.ac(code_number(0).view(), false);
  tables.ac(code_number(most_kept).view(), false);
  for (int i = 0; i <= most_kept; ++i) EXPECT_EQ(is_kept(tables, i), i != 1) << i;
}

TEST(JpegTableCache, SymbolsArePairedWhenACodeIsUsedAgain) {
  jpeg_table_cache tables;
  const auto code = code_number(1);
  const auto table = tables.ac(code.view(), false);
  EXPECT_FALSE(table->paired);
  ac_table alone;
  ASSERT_TRUE(alone.build(code.view()));
  EXPECT_EQ(table->entries, alone.entries);
  alone.pair_symbols();
  EXPECT_NE(table->entries, alone.entries);
  for (int use = 2; use < 5; ++use) {
    EXPECT_TRUE(tables.ac(code.view(), false)->paired);
    EXPECT_EQ(table->entries, alone.entries) << use;
  }
}

TEST(JpegTableCache, SymbolsArePairedAtOnceForLargeImages) {
  jpeg_table_cache tables;
  EXPECT_TRUE(tables.ac(code_number(1).view(), true)->paired);
  EXPECT_FALSE(tables.ac(code_number(2).view(), false)->paired);
}

TEST(JpegTableCache, AnInvalidCodeNeverHasATable) {
  jpeg_table_cache tables;
  const coded too_large(3, {12});  // no size of a difference of 8 bits a sample
  for (int use = 1; use < 4; ++use) {
    EXPECT_EQ(tables.dc(no_code().view()), nullptr) << use;
    EXPECT_EQ(tables.dc(too_large.view()), nullptr) << use;
    EXPECT_EQ(tables.ac(no_code().view(), use == 3), nullptr) << use;
  }
  EXPECT_NE(tables.dc(code_number(1).view()), nullptr);
  EXPECT_NE(tables.ac(code_number(1).view(), false), nullptr);
}

// Where the other one is complete, the image stops anywhere in a row of blocks.
TEST(JpegTableCache, SymbolsMayBePairedWhileAnImageIsDecoded) {
  const auto seed = test::new_seed();
  SCOPED_TRACE(seed);
  jpeg_maker make(seed);
  for (const auto level : levels_here()) {
    const auto file = make.file(160, 160, {}), other_file = make.file(40, 24, {.quality = 5});
    ASSERT_LT(file.size(), 65536u) << "or symbols are paired at once";
    libjpeg_planes planes;
    ASSERT_TRUE(read_libjpeg_planes(file, planes));
    jpeg_table_cache tables, of_other;
    jpeg_image image(level), other(level), again(level);
    ASSERT_TRUE(image.open(file, tables));
    image.begin(whole_of(image), all_rows);
    ASSERT_TRUE(other.open(other_file, of_other));
    other.begin(whole_of(other), all_rows);
    ASSERT_TRUE(other.decode(23, &image));
    ASSERT_FALSE(image.is_complete());
    ASSERT_TRUE(again.open(file, tables));
    again.begin(whole_of(again), all_rows);
    ASSERT_TRUE(image.decode(159, &again));
    ASSERT_TRUE(again.decode(159, nullptr));
    EXPECT_TRUE(has_planes_of(image, planes));
    EXPECT_TRUE(has_planes_of(again, planes));
  }
}

}  // namespace lade::media::jpeg_tables_test
