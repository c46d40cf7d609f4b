#include "../../media/av1_header.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <ostream>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace lade::media {

static bool operator==(const av1_size& a, const av1_size& b) {
  return std::tie(a.width, a.height) == std::tie(b.width, b.height);
}

static void PrintTo(const av1_size& size, std::ostream* to) {
  *to << size.width << " x " << size.height;
}

namespace av1_header_test {

static support::byte_view view_of(std::string_view text) { return std::as_bytes(std::span(text)); }

// Numbers and how many bits each has, high bit first.
using bits = std::vector<std::pair<std::uint32_t, int>>;

static bits operator+(bits a, const bits& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

static std::string bytes_of(const bits& numbers) {
  std::string bytes;
  int free = 0;  // bits of the last byte
  for (const auto& [number, count] : numbers)
    for (int i = count; i-- > 0;) {
      if (free == 0) bytes += '\0';
      free = (free + 7) % 8;
      if ((number >> i & 1) != 0)
        bytes.back() = static_cast<char>(static_cast<unsigned char>(bytes.back()) | 1U << free);
    }
  return bytes;
}

// seq_profile, still_picture and reduced_still_picture_header
static const bits of_still_picture{{0, 3}, {1, 1}, {1, 1}};
static const bits of_video{{0, 3}, {0, 1}, {0, 1}};
static const bits no_timing{{0, 1}};
static const bits no_display_delays{{0, 1}};
static const bits one_operating_point{{0, 5}, {0, 12}, {7, 5}};

static bits size_of(std::uint32_t width, std::uint32_t height) {
  return {{15, 4}, {13, 4}, {width - 1, 16}, {height - 1, 14}};
}

static av1_size size_in(const bits& header) { return av1_sequence_size(view_of(bytes_of(header))); }

TEST(Av1Header, SizeOfAStillPictureIsFound) {
  EXPECT_EQ(size_in(of_still_picture + bits{{31, 5}} + size_of(12000, 9000)),
            (av1_size{12000, 9000}));
  EXPECT_EQ(size_in(of_still_picture + bits{{0, 5}, {0, 4}, {0, 4}, {1, 1}, {0, 1}}),
            (av1_size{2, 1}));
  EXPECT_EQ(size_in(of_still_picture + bits{{0, 5}, {15, 4}, {15, 4}, {0xffff, 16}, {0xffff, 16}}),
            (av1_size{65536, 65536}));
}

TEST(Av1Header, SizeIsFoundBehindASingleOperatingPoint) {
  EXPECT_EQ(
      size_in(of_video + no_timing + no_display_delays + one_operating_point + size_of(640, 480)),
      (av1_size{640, 480}));
}

TEST(Av1Header, SizeIsFoundBehindTimes) {
  const bits ticks{{1, 1}, {1, 32}, {25, 32}};
  const bits no_model{{0, 1}};
  const auto rest = no_display_delays + one_operating_point + size_of(640, 480);
  EXPECT_EQ(size_in(of_video + ticks + bits{{0, 1}} + no_model + rest), (av1_size{640, 480}));
  for (int zeros = 0; zeros < 32; ++zeros) {
    const bits interval{{1, 1}, {0, zeros}, {1, 1}, {~std::uint32_t{0}, zeros}};
    EXPECT_EQ(size_in(of_video + ticks + interval + no_model + rest), (av1_size{640, 480}))
        << zeros;
  }
}

TEST(Av1Header, SizeIsFoundBehindOperatingPointsOfEveryKind) {
  const bits ticks{{1, 1}, {1, 32}, {25, 32}, {0, 1}};
  const bits model{{1, 1}, {19, 5}, {1, 32}, {9, 5}, {9, 5}};  // delays of 20 bits
  const bits delays{{1, 1}, {0xfffff, 20}, {0xfffff, 20}, {1, 1}};
  const bits no_delays{{0, 1}};
  const bits display_delay{{1, 1}, {9, 4}};
  const bits no_display_delay{{0, 1}};
  auto points = bits{{3, 5}};
  for (const std::uint32_t level : {7U, 8U})
    for (const bool has_delays : {false, true}) {
      points = points + bits{{0xfff, 12}, {level, 5}};
      if (level > 7) points = points + bits{{1, 1}};  // seq_tier
      points = points + (has_delays ? delays : no_delays);
      points = points + (has_delays ? no_display_delay : display_delay);
    }
  EXPECT_EQ(size_in(of_video + ticks + model + bits{{1, 1}} + points + size_of(640, 480)),
            (av1_size{640, 480}));
}

TEST(Av1Header, AHeaderThatEndsTooEarlyHasNoSize) {
  const auto whole =
      bytes_of(of_video + no_timing + no_display_delays + one_operating_point + size_of(640, 480));
  for (std::size_t kept = 0; kept < whole.size(); ++kept)
    EXPECT_EQ(av1_sequence_size(view_of(std::string_view(whole).substr(0, kept))), av1_size{})
        << kept;
  EXPECT_EQ(av1_sequence_size(view_of(std::string(600, '\0'))), (av1_size{1, 1}));
  for (const auto* byte : {"\xff", "\x04", "\x08"}) {
    std::string same;
    for (int i = 0; i < 600; ++i) same += byte;
    av1_sequence_size(view_of(same));
  }
}

static std::string sequence_header(std::uint32_t width, std::uint32_t height) {
  return bytes_of(of_still_picture + bits{{0, 5}} + size_of(width, height));
}

// An OBU of a type, with a size field of `size_bytes`.
static std::string obu(int type, const std::string& payload, std::size_t size_bytes = 1) {
  std::string bytes(1, static_cast<char>(type << 3 | 2));
  for (std::size_t i = 0; i < size_bytes; ++i)
    bytes += static_cast<char>((payload.size() >> 7 * i & 0x7f) | (i + 1 < size_bytes ? 0x80 : 0));
  return bytes + payload;
}

static constexpr int sequence = 1;
static constexpr int delimiter = 2;
static constexpr int frame = 6;

static av1_size largest_of(const std::string& sample) {
  av1_sizes sizes(100);
  sizes.add(view_of(sample));
  sizes.end_sample();
  return sizes.largest();
}

TEST(Av1Sizes, LargestIsThatOfAllSequenceHeaders) {
  EXPECT_EQ(largest_of(""), av1_size{});
  EXPECT_EQ(largest_of(obu(delimiter, "") + obu(frame, "pixels")), av1_size{});
  const auto small = obu(sequence, sequence_header(8, 9));
  const auto large = obu(sequence, sequence_header(800, 900));
  const auto medium = obu(sequence, sequence_header(80, 90));
  EXPECT_EQ(largest_of(obu(delimiter, "") + small + obu(frame, "pixels") + large +
                       obu(frame, std::string(300, 'x'), 2) + medium),
            (av1_size{800, 900}));
}

TEST(Av1Sizes, PayloadsOfOtherObusAreNotLookedAt) {
  const auto large = obu(sequence, sequence_header(800, 900));
  EXPECT_EQ(largest_of(obu(frame, large)), av1_size{});
  EXPECT_EQ(largest_of(obu(frame, std::string(1000, 'x') + large, 2) +
                       obu(sequence, sequence_header(8, 9))),
            (av1_size{8, 9}));
}

TEST(Av1Sizes, ExtensionsAndLongSizeFieldsAreSkipped) {
  for (const std::size_t bytes : {1U, 2U, 8U}) {
    const auto header = obu(sequence, sequence_header(800, 900), bytes);
    auto extended = header.substr(0, 1) + "\x28" + header.substr(1);
    extended[0] = static_cast<char>(extended[0] | 4);
    EXPECT_EQ(largest_of(obu(frame, "pixels", bytes) + header), (av1_size{800, 900}));
    EXPECT_EQ(largest_of(obu(frame, "pixels", bytes) + extended), (av1_size{800, 900}));
  }
}

TEST(Av1Sizes, AnObuWithoutASizeGoesToTheEndOfTheSample) {
  const auto header = "\x08" + sequence_header(800, 900);
  EXPECT_EQ(largest_of(header), (av1_size{800, 900}));
  EXPECT_EQ(largest_of("\x30" + header), av1_size{});
}

TEST(Av1Sizes, ZerosBetweenObusAreSkipped) {
  EXPECT_EQ(largest_of(obu(frame, "pixels") + std::string(20, '\0') +
                       obu(sequence, sequence_header(800, 900))),
            (av1_size{800, 900}));
}

TEST(Av1Sizes, ASampleMayBeAddedInAnyParts) {
  const auto sample = obu(delimiter, "") + obu(frame, std::string(200, '\x0a'), 2) +
                      obu(sequence, sequence_header(800, 900), 3) + obu(frame, "pixels");
  for (std::size_t first = 0; first <= sample.size(); ++first)
    for (std::size_t second = first; second <= sample.size(); ++second) {
      av1_sizes sizes(100);
      sizes.add(view_of(std::string_view(sample).substr(0, first)));
      sizes.add(view_of(std::string_view(sample).substr(first, second - first)));
      sizes.add(view_of(std::string_view(sample).substr(second)));
      ASSERT_EQ(sizes.largest(), (av1_size{800, 900})) << first << ", " << second;
    }
}

TEST(Av1Sizes, ASampleThatIsCutOffDoesNotHideTheNext) {
  const auto sample = obu(frame, "pixels", 2) + obu(sequence, sequence_header(800, 900));
  for (std::size_t kept = 0; kept < sample.size(); ++kept) {
    av1_sizes sizes(100);
    sizes.add(view_of(std::string_view(sample).substr(0, kept)));
    sizes.end_sample();
    sizes.add(view_of(sample));
    ASSERT_EQ(sizes.largest(), (av1_size{800, 900})) << kept;
  }
}

TEST(Av1Sizes, NoMoreObusAreLookedAtThanAllowed) {
  av1_sizes sizes(10);
  for (int i = 0; i < 9; ++i) sizes.add(view_of(obu(delimiter, "")));
  EXPECT_FALSE(sizes.has_too_many_obus());
  sizes.add(view_of(obu(delimiter, "") + obu(sequence, sequence_header(800, 900))));
  EXPECT_TRUE(sizes.has_too_many_obus());
  EXPECT_EQ(sizes.largest(), av1_size{});
}

}  // namespace av1_header_test
}  // namespace lade::media
