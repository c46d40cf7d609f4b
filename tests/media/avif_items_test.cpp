#include "../../media/avif_items.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace lade::media::avif_items_test {

using namespace std::string_literals;

static support::byte_view view_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

static std::string number(std::uint64_t value, int bytes) {
  std::string text;
  while (bytes-- > 0) text += static_cast<char>(value >> 8 * bytes & 0xff);
  return text;
}

static std::string box(const std::string& type, const std::string& contents) {
  return number(8 + contents.size(), 4) + type + contents;
}

// A sequence header of a still picture of 200 x 100 pixels, and one of 20 x 10.
static const auto large = "\x0a\x05\x18\x1d\xb1\xf1\x80"s;
static const auto small = "\x0a\x05\x18\x1d\x84\xc4\x80"s;

static std::string entry(std::uint64_t item, const std::string& type, int version = 2) {
  return box("infe", number(static_cast<unsigned>(version), 1) + "\0\0\0"s +
                         number(item, version == 2 ? 2 : 4) + "\0\0"s + type + "\0"s);
}

static std::string information(const std::vector<std::string>& entries) {
  std::string contents = "\0\0\0\0"s + number(entries.size(), 2);
  for (const auto& each : entries) contents += each;
  return box("iinf", contents);
}

struct extent {
  std::uint64_t offset;
  std::uint64_t length;
};

// Of one item. Offsets count from `base`.
static std::string location(std::uint64_t item, const std::vector<extent>& extents, int method = 0,
                            std::uint64_t base = 0) {
  std::string contents = "\1\0\0\0\x44\x80\0\1"s + number(item, 2) +
                         number(static_cast<unsigned>(method), 2) + "\0\0"s + number(base, 8) +
                         number(extents.size(), 2);
  for (const auto& [offset, length] : extents) contents += number(offset, 4) + number(length, 4);
  return box("iloc", contents);
}

static std::string meta(const std::string& boxes) { return box("meta", "\0\0\0\0"s + boxes); }

// Data come first, so that offsets do not depend on the boxes.
static std::uint32_t width_in(const std::string& file) {
  av1_sizes sizes(file.size());
  add_avif_items(view_of(file), sizes);
  return sizes.largest().width;
}

TEST(AvifItems, DataOfAnItemAreFoundByTheirOffset) {
  const auto data = box("mdat", small + large + small);
  const auto av1 = information({entry(7, "av01")});
  EXPECT_EQ(width_in(data + meta(av1 + location(7, {{8, 7}}))), 20u);
  EXPECT_EQ(width_in(data + meta(av1 + location(7, {{15, 7}}))), 200u);
  EXPECT_EQ(width_in(data + meta(location(7, {{7, 7}}, 0, 8) + av1)), 200u);
  EXPECT_EQ(width_in(data + meta(location(7, {{15, 7}}) + information({entry(7, "av01", 3)}))),
            200u);
}

TEST(AvifItems, ExtentsOfAnItemFollowEachOther) {
  const auto data = box("mdat", large);
  const auto av1 = information({entry(7, "av01")});
  EXPECT_EQ(width_in(data + meta(av1 + location(7, {{8, 1}, {9, 4}, {13, 2}}))), 200u);
  EXPECT_EQ(width_in(data + meta(av1 + location(7, {{8, 1}, {13, 2}, {9, 4}}))), 0u);
}

TEST(AvifItems, AnExtentBehindTheEndIsLookedAtAsFarAsItIsThere) {
  const auto boxes = meta(information({entry(7, "av01")}) + location(7, {{8, 0xffffffff}}));
  EXPECT_EQ(width_in(box("mdat", large) + boxes), 200u);
}

TEST(AvifItems, DataMayLieBesideTheBoxesThatDescribeThem) {
  const auto av1 = information({entry(7, "av01")});
  const auto stored = box("idat", small + large);
  EXPECT_EQ(width_in(meta(av1 + location(7, {{7, 7}}, 1) + stored)), 200u);
  EXPECT_EQ(width_in(meta(stored + location(7, {{0, 3}, {3, 4}}, 1, 7) + av1)), 200u);
  auto to_the_end = meta(av1 + location(7, {{7, 7}}, 1) + stored);
  to_the_end.replace(0, 4, "\0\0\0\0"s);
  EXPECT_EQ(width_in(to_the_end), 200u);
}

TEST(AvifItems, ItemsOfOtherCodersAreNotLookedAt) {
  const auto data = box("mdat", small + large);
  const auto text = information({entry(7, "mime"), entry(8, "av01")});
  EXPECT_EQ(width_in(data + meta(text + location(7, {{15, 7}}))), 0u);
  EXPECT_EQ(width_in(data + meta(text + location(8, {{15, 7}}))), 200u);
}

TEST(AvifItems, DamagedBoxesHaveNoItems) {
  const auto data = box("mdat", large);
  const auto file =
      data + meta(information({entry(7, "av01")}) + location(7, {{8, 1}, {9, 4}, {13, 2}}));
  ASSERT_EQ(width_in(file), 200u);
  for (std::size_t kept = 0; kept < file.size(); ++kept)
    EXPECT_EQ(width_in(file.substr(0, kept)), 0u) << kept;
  for (std::size_t at = data.size(); at < file.size(); ++at)
    for (const char byte : {'\0', '\1', '\x7f', '\xff'}) {
      auto damaged = file;
      damaged[at] = byte;
      width_in(damaged);
    }
}

TEST(AvifItems, ManyItemsThatShareDataExceedTheLimit) {
  std::string delimiters;
  for (int i = 0; i < 30; ++i) delimiters += "\x12\0"s;
  const auto data = box("mdat", delimiters);
  const std::vector<extent> same(50, {8, 60});
  const auto file = data + meta(information({entry(7, "av01")}) + location(7, same));
  av1_sizes sizes(1000);
  add_avif_items(view_of(file), sizes);
  EXPECT_TRUE(sizes.has_too_many_obus());
}

TEST(AvifItems, TracksAreThoseOfABoxOfTheFile) {
  EXPECT_TRUE(avif_has_tracks(view_of(box("ftyp", "avis") + box("moov", "...."))));
  EXPECT_FALSE(avif_has_tracks(view_of(box("ftyp", "avis") + meta(box("moov", "....")))));
}

static std::string sequence_of(std::size_t chunks, std::size_t counts) {
  auto made = box("stbl", box("stco", std::string(8 + 4 * chunks, '\0')) +
                              box("stsc", std::string(8 + 12 * counts, '\0')));
  for (const auto* type : {"minf", "mdia", "trak", "moov"}) made = box(type, made);
  return box("ftyp", "avis\0\0\0\0avis"s) + made;
}

TEST(AvifItems, SequencesOfTooManyChunksAreFound) {
  EXPECT_FALSE(avif_has_too_many_chunks(view_of(sequence_of(100'000, 1))));
  EXPECT_FALSE(avif_has_too_many_chunks(view_of(sequence_of(10'000, 10'000))));
  EXPECT_TRUE(avif_has_too_many_chunks(view_of(sequence_of(20'000, 20'000))));
}

}  // namespace lade::media::avif_items_test
