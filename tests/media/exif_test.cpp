#include "../../media/exif.hpp"
#include "../support/live_allocations.hpp"

#include <gtest/gtest.h>

#include <span>
#include <string>
#include <string_view>

#include <zlib.h>

namespace lade::media::exif_test {

using namespace std::string_literals;

static int orientation_in(std::string_view file) {
  return exif_orientation(std::as_bytes(std::span(file)));
}

// A TIFF structure, high byte first, with a tag before that of the orientation.
static std::string tiff_of(char orientation) {
  return "MM\0*\0\0\0\x08\0\x02"s + "\x01\x0f\0\x02\0\0\0\x01\0\0\0\0"s +
         "\x01\x12\0\x03\0\0\0\x01\0"s + orientation + "\0\0\0\0\0\0"s;
}

static std::string jpeg_of(const std::string& tiff) {
  const auto body = "Exif\0\0"s + tiff;
  return "\xff\xd8\xff\xe0\0\x04JF\xff\xff\xe1\0"s + static_cast<char>(body.size() + 2) + body +
         "\xff\xda\0\0"s;
}

TEST(Exif, OrientationIsFoundInEveryContainer) {
  EXPECT_EQ(orientation_in(tiff_of(6)), 6);
  EXPECT_EQ(orientation_in(jpeg_of(tiff_of(8))), 8);
  const auto tiff = tiff_of(3);
  const auto size = static_cast<char>(tiff.size());
  const auto rest = "\0\0\0\0"s;
  EXPECT_EQ(
      orientation_in("\x89PNG\r\n\x1a\n\0\0\0\x01IHDR.crc.\0\0\0"s + size + "eXIf" + tiff + rest),
      3);
  EXPECT_EQ(orientation_in("RIFF....WEBPVP8 \x01\0\0\0x\0"s + "EXIF"s + size + "\0\0\0"s + tiff),
            3);
}

static std::string png_of(const std::string& name, const std::string& body) {
  const auto size = static_cast<char>(body.size());
  return "\x89PNG\r\n\x1a\n\0\0\0\x01IHDR.crc.\0\0\0"s + size + name + body + "\0\0\0\0"s;
}

static const auto attribute = R"(<x xmlns:tiff="ns" tiff:Orientation="6"/>)"s;
static const auto element = "<x><tiff:Orientation> 8 </tiff:Orientation></x>"s;

TEST(Exif, XmpIsReadWhereExifSaysNothing) {
  const auto app1 = "http://ns.adobe.com/xap/1.0/\0"s + attribute;
  const auto jpeg = "\xff\xd8\xff\xe1\0"s + static_cast<char>(app1.size() + 2) + app1;
  EXPECT_EQ(orientation_in(jpeg + "\xff\xda\0\0"s), 6);
  EXPECT_EQ(orientation_in(jpeg + jpeg_of(tiff_of(3)).substr(2)), 3);
  EXPECT_EQ(orientation_in(jpeg + jpeg_of(tiff_of(0)).substr(2)), 6);
  EXPECT_EQ(orientation_in(png_of("iTXt", "XML:com.adobe.xmp\0\0\0\0\0"s + element)), 8);
  const auto size = static_cast<char>(element.size());
  EXPECT_EQ(orientation_in("RIFF....WEBPXMP "s + size + "\0\0\0"s + element), 8);
}

TEST(Exif, RawProfilesOfPngsAreRead) {
  const auto bytes = "Exif\0\0"s + tiff_of(6);
  auto text = "\nexif\n      44\n"s;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
    if (text.size() % 20 == 0) text += '\n';
  }
  for (const auto& kind : {"exif"s, "APP1"s})
    EXPECT_EQ(orientation_in(png_of("tEXt", "Raw profile type " + kind + '\0' + text)), 6);
  uLongf size = 200;
  std::string compressed(size, '\0');
  compress(reinterpret_cast<Bytef*>(compressed.data()), &size,
           reinterpret_cast<const Bytef*>(text.data()), text.size());
  compressed.resize(size);
  EXPECT_EQ(orientation_in(png_of("zTXt", "Raw profile type exif\0\0"s + compressed)), 6);
}

// A chunk whose text is compressed.
static std::string compressed_text(const std::string& keyword, const std::string& text) {
  auto size = compressBound(static_cast<uLong>(text.size()));
  std::string compressed(size, '\0');
  compress(reinterpret_cast<Bytef*>(compressed.data()), &size,
           reinterpret_cast<const Bytef*>(text.data()), static_cast<uLong>(text.size()));
  compressed.resize(size);
  const auto body = keyword + "\0\0"s + compressed;
  const auto length = [&](int shift) { return static_cast<char>(body.size() >> shift & 0xff); };
  return ""s + length(24) + length(16) + length(8) + length(0) + "zTXt" + body + "\0\0\0\0"s;
}

TEST(Exif, TextsOfPngsThatSayNothingOfItAreNotInflated) {
  auto file = "\x89PNG\r\n\x1a\n"s;
  for (int i = 0; i < 1000; ++i) file += compressed_text("Comment", "text");
  const auto before = test::allocations_made();
  EXPECT_EQ(orientation_in(file), 1);
  EXPECT_LE(test::allocations_made() - before, 1u);
}

TEST(Exif, TextsOfPngsAreInflatedToNoMoreThanOneMebibyteAltogether) {
  constexpr std::size_t half = 1 << 19;
  const auto start = "\x89PNG\r\n\x1a\n"s;
  const auto last = compressed_text("XML:com.adobe.xmp", attribute);
  const auto filler = [](std::size_t size) {
    return compressed_text("XML:com.adobe.xmp", std::string(size, ' '));
  };
  EXPECT_EQ(orientation_in(start + filler(half) + last), 6);
  EXPECT_EQ(orientation_in(start + filler(half) + filler(half) + last), 1);
  EXPECT_EQ(orientation_in(start + filler(4 * half) + last), 1);
}

TEST(Exif, LowByteFirstIsReadToo) {
  EXPECT_EQ(orientation_in("II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x05\0\0\0"s), 5);
}

TEST(Exif, NoneOrNonsenseIsUpright) {
  EXPECT_EQ(orientation_in(""), 1);
  EXPECT_EQ(orientation_in("\xff\xd8"), 1);
  EXPECT_EQ(orientation_in(tiff_of(0)), 1);
  EXPECT_EQ(orientation_in(tiff_of(9)), 1);
  EXPECT_EQ(orientation_in("MM\0*\xff\xff\xff\xff"s), 1);
}

TEST(Exif, CutOffAnywhereIsUprightOrRight) {
  for (const auto& whole : {tiff_of(6), jpeg_of(tiff_of(6))})
    for (std::size_t kept = 0; kept < whole.size(); ++kept) {
      const auto orientation = orientation_in(std::string_view(whole).substr(0, kept));
      EXPECT_TRUE(orientation == 1 || orientation == 6) << kept;
    }
}

}  // namespace lade::media::exif_test
