// Small functions for authors of modules. Those with more to test have a file of their own.

#include <lade/support/byte_view.hpp>
#include <lade/support/divide_list.hpp>
#include <lade/support/little_endian.hpp>
#include <lade/support/name_digest.hpp>
#include <lade/support/utf8.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>

namespace lade::support::support_test {

using testing::ElementsAre;
using testing::IsEmpty;

static byte_view view_of(std::string_view text) { return std::as_bytes(std::span(text)); }

static std::uint64_t digest_of(std::initializer_list<std::string_view> names) {
  name_digest digest;
  for (auto name : names) digest.add(name);
  return digest.value();
}

TEST(ByteView, ReadsNumbersInBothOrders) {
  auto bytes = view_of("\x01\x02\x03\xff");
  EXPECT_EQ(bytes.little(1, 3), 0xff0302u);
  EXPECT_EQ(bytes.big(1, 3), 0x0203ffu);
  EXPECT_EQ(bytes[3], 0xff);
}

TEST(ByteView, HasNothingAtOrAfterItsEnd) {
  constexpr auto far = std::numeric_limits<std::size_t>::max();
  auto bytes = view_of("abcd");
  EXPECT_EQ(bytes[4], 0);
  EXPECT_EQ(bytes.little(2, 3), 0u);
  EXPECT_EQ(bytes.big(far, 2), 0u);
  EXPECT_FALSE(bytes.holds(1, far));
  EXPECT_TRUE(bytes.part(2, 3).empty());
  EXPECT_TRUE(bytes.part(far, 1).empty());
  EXPECT_TRUE(bytes.from(5).empty());
  EXPECT_EQ(bytes.part(1, 3).text(), "bcd");
  EXPECT_EQ(bytes.from(3).text(), "d");
}

TEST(LittleEndian, NumbersAreReadAsTheyAreWritten) {
  std::string text = "x";
  append_little(text, std::uint32_t{0x80010203});
  append_little(text, std::uint16_t{7});
  EXPECT_EQ(text, std::string_view("x\x03\x02\x01\x80\x07\0", 7));
  EXPECT_EQ(load_little<std::uint32_t>(std::string_view(text).substr(1)), 0x80010203u);
  auto bytes = std::as_bytes(std::span(text)).subspan(1);
  EXPECT_EQ(load_little<std::uint16_t>(bytes, 2), 7);
  EXPECT_EQ(load_little<std::int32_t>(bytes.data()), -2147417597);
}

TEST(DivideList, WordsAreWithoutTheBlanksAroundThem) {
  EXPECT_THAT(divide_list(" x,\ty z ,,\n"), ElementsAre("x", "y z"));
  EXPECT_THAT(divide_list(""), IsEmpty());
  EXPECT_THAT(divide_list(" , "), IsEmpty());
}

TEST(NameDigest, DependsOnTheNamesTheirOrderAndWhereTheyEnd) {
  EXPECT_EQ(digest_of({"a", "b"}), digest_of({"a", "b"}));
  EXPECT_NE(digest_of({"a", "b"}), digest_of({"b", "a"}));
  EXPECT_NE(digest_of({"ab", "c"}), digest_of({"a", "bc"}));
  EXPECT_NE(digest_of({"a"}), digest_of({"a", ""}));
}

TEST(Utf8, CharactersAreCountedAndBytesThatAreNoneAsOneEach) {
  EXPECT_EQ(utf8_characters("a\u00e4\u20ac\U0001f600"), 4u);
  EXPECT_EQ(utf8_characters("a\xff\xc0\x80"), 4u);
  EXPECT_EQ(utf8_length("\u20ac"), 3u);
  EXPECT_EQ(utf8_length(""), 0u);
  EXPECT_EQ(utf8_length("\xed\xa0\x80"), 0u);  // a surrogate
}

TEST(Utf8, WhatIsAppendedHasTheLengthOfItsCharacter) {
  for (char32_t code : {U'a', U'\u07ff', U'\uffff', U'\U0010ffff'}) {
    std::string text;
    append_utf8(text, code);
    EXPECT_EQ(utf8_length(text), text.size());
    EXPECT_EQ(utf8_characters(text), 1u);
  }
}

}  // namespace lade::support::support_test
