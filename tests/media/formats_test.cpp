// Files of every kind that formats.py makes, against the pixels that they were made from.

#include "../support/seed.hpp"
#include "jpeg_writer.hpp"
#include "pillow.hpp"

#include <lade/error.hpp>
#include <lade/media/crop.hpp>
#include <lade/media/image.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <sys/resource.h>
#include <unistd.h>

namespace lade::media::formats_test {

struct known_image {
  sample file;
  tensor pixels;
};

static std::vector<known_image> make_corpus() {
  const temporary_directory directory;
  const auto script = tests_directory() / "media/formats.py";
  const auto line = "/usr/bin/python3 " + script.string() + " " + photos()[1].string() + " " +
                    directory.path().string();
  if (std::system(line.c_str()) != 0) throw std::runtime_error("failed: " + line);
  std::vector<known_image> images;
  for (const auto& path : files_in(directory.path())) {
    if (path.extension() == ".raw") continue;
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> raw(
        std::fopen((path.string() + ".raw").c_str(), "rb"), std::fclose);
    images.push_back({load(path), read_raw(raw.get())});
  }
  return images;
}

// Made once for all tests.
static const std::vector<known_image>& corpus() {
  static const auto images = make_corpus();
  return images;
}

static std::string extension_of(const known_image& image) {
  return std::filesystem::path(image.file.key()).extension();
}

// The extension, or one for all kinds of PNM.
static std::string format_of(const known_image& image) {
  auto extension = extension_of(image);
  const bool is_pnm = extension == ".pbm" || extension == ".pgm" || extension == ".ppm";
  return is_pnm ? ".pnm" : extension;
}

class Formats : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (have_makers()) corpus();  // which outlives the first test
  }
  void SetUp() override {
    if (!have_makers()) GTEST_SKIP() << "a tool that makes files of some format is not installed";
  }
};

// What is wrong with an image that should be `expected`; nothing if it is that.
static std::string fault_of(const sample& file, const tensor& expected) {
  try {
    const tensor decoded = decode_image()(file);
    if (decoded.shape() != expected.shape())
      return "is " + to_string(decoded.shape()) + " instead of " + to_string(expected.shape());
    const int levels = difference(decoded, expected);
    return levels == 0 ? "" : "differs by " + std::to_string(levels);
  } catch (const error& failure) {
    return failure.what();
  }
}

TEST_F(Formats, EveryKindDecodesToThePixelsThatItWasMadeFrom) {
  std::map<std::string, int> kinds;
  for (const auto& image : corpus()) {
    EXPECT_EQ(fault_of(image.file, image.pixels), "") << image.file.key();
    ++kinds[extension_of(image)];
  }
  for (const auto& [extension, least] : std::map<std::string, int>{{".jpg", 85},
                                                                   {".tif", 190},
                                                                   {".png", 70},
                                                                   {".gif", 50},
                                                                   {".bmp", 35},
                                                                   {".webp", 10},
                                                                   {".avif", 28}})
    EXPECT_GE(kinds[extension], least) << extension;
}

TEST_F(Formats, MemoryForAllPixelsIsEstimatedFromTheHeaderOfEveryKind) {
  const decode_image small({.width = 1, .height = 1});
  for (const auto& [file, pixels] : corpus()) {
    const auto count = static_cast<std::size_t>(pixels.shape()[0] * pixels.shape()[1]);
    const bool in_rows = file.key().ends_with(".jpg");  // most of them
    EXPECT_GE(small.memory_to_write(file), in_rows ? 0 : count) << file.key();
    EXPECT_GE(decode_image().memory_needed(file), (in_rows ? 3 : 4) * count) << file.key();
    EXPECT_LE(small.memory_to_write(file), 48 * count + (1 << 16)) << file.key();
  }
}

TEST_F(Formats, TheSizeIsReadFromTheHeaderOfEveryKind) {
  for (const auto& [file, pixels] : corpus()) {
    const image_size size{static_cast<int>(pixels.shape()[1]), static_cast<int>(pixels.shape()[0])};
    EXPECT_EQ(size_of_image(file), size) << file.key();
  }
}

// The numbers below `count` in an order in which each follows each, itself too, once: a de Bruijn
// sequence.
static std::vector<std::size_t> every_pair(std::size_t count) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < count; ++i) {
    order.push_back(i);
    for (std::size_t j = i + 1; j < count; ++j) order.insert(order.end(), {i, j});
  }
  order.push_back(0);
  return order;
}

// An image may leave something behind in the decoder that its thread keeps, or in a library.
TEST_F(Formats, DecodingAFileDoesNotAffectTheNextOfItsFormat) {
  std::map<std::string, std::vector<const known_image*>> formats;
  for (const auto& image : corpus()) formats[format_of(image)].push_back(&image);
  for (const auto& [format, images] : formats) {
    const known_image* before = images[0];
    for (const auto i : every_pair(images.size())) {
      ASSERT_EQ(fault_of(images[i]->file, images[i]->pixels), "")
          << images[i]->file.key() << " after " << before->file.key();
      before = images[i];
    }
  }
}

// A random part of all pairs.
TEST_F(Formats, DecodingAFileDoesNotAffectTheNextOfAnotherFormat) {
  const auto seed = test::new_seed();
  SCOPED_TRACE("LADE_SEED=" + std::to_string(seed));
  random draw(seed);
  for (const auto& one : corpus())
    for (const auto& other : corpus()) {
      if (format_of(one) == format_of(other) || draw.below(40) > 0) continue;
      for (const auto* image : {&one, &other})
        ASSERT_EQ(fault_of(image->file, image->pixels), "")
            << one.file.key() << " and " << other.file.key();
    }
}

TEST_F(Formats, ImagesOfAllKindsMayFollowEachOtherInAnyOrder) {
  const auto seed = test::new_seed();
  SCOPED_TRACE("LADE_SEED=" + std::to_string(seed));
  random draw(seed);
  for (int i = 0; i < 3000; ++i) {
    const auto& image = corpus()[draw.below(corpus().size())];
    ASSERT_EQ(fault_of(image.file, image.pixels), "") << image.file.key();
  }
}

// What becomes of a file that may be damaged: an error that names it, or pixels.
static std::optional<tensor> decode_or_refuse(const sample& file) {
  try {
    return decode_image()(file);
  } catch (const error& failure) {
    EXPECT_TRUE(failure.code() == errc::invalid_data || failure.code() == errc::unsupported ||
                failure.code() == errc::limit_exceeded)
        << failure.what();
    EXPECT_TRUE(std::string_view(failure.what()).starts_with("decode " + file.key() + ": "))
        << failure.what();
    EXPECT_EQ(std::string_view(failure.what()).find("patches"), std::string_view::npos);
    return std::nullopt;
  }
}

TEST_F(Formats, AFileThatIsCutOffAnywhereIsRefusedUnlessNothingIsMissing) {
  for (const auto& [file, pixels] : corpus()) {
    constexpr std::size_t places = 50;
    const auto bytes = file.data().size();
    for (std::size_t i = 0; i < places; ++i) {
      const auto kept = i < 8 ? bytes - 1 - i : bytes * i / places;
      const auto cut = sample(file.key()).with_data(file.data().slice(0, kept));
      const auto decoded = decode_or_refuse(cut);
      if (!decoded) continue;
      EXPECT_EQ(difference(*decoded, pixels), 0) << file.key() << " of " << kept;
    }
  }
}

// No more address space than now and `more` bytes, as long as it lives. Sanitizers reserve
// terabytes, and are left alone.
class address_space_limit {
 public:
  explicit address_space_limit(rlim_t more) {
    std::size_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    const rlim_t used = pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE));
    getrlimit(RLIMIT_AS, &before_);
    const rlimit now{used < rlim_t{1} << 40 ? used + more : before_.rlim_cur, before_.rlim_max};
    setrlimit(RLIMIT_AS, &now);
  }
  ~address_space_limit() { setrlimit(RLIMIT_AS, &before_); }
  address_space_limit(const address_space_limit&) = delete;
  address_space_limit& operator=(const address_space_limit&) = delete;

 private:
  rlimit before_{};
};

static const sample& file_named(std::string_view name) {
  const auto is_it = [&](const known_image& image) { return image.file.key() == name; };
  return std::ranges::find_if(corpus(), is_it)->file;
}

// The file with `bytes` instead of its own, `offset` behind the first `mark`.
static sample patched(std::string_view name, std::string_view mark, std::size_t offset,
                      std::string_view bytes) {
  const auto& file = file_named(name);
  buffer data(file.data().size());
  std::memcpy(data.data(), file.data().data(), data.size());
  std::memcpy(data.data() + data.text().find(mark) + offset, bytes.data(), bytes.size());
  return sample(std::string(name)).with_data(data);
}

TEST_F(Formats, AHeaderOfAHugeImageIsRefusedBeforeItsPixelsAreAllocated) {
  const std::string_view huge("\0\0\xff\xff\0\0\xff\xff", 8);
  const std::string_view low("\xff\xff\0\0\xff\xff\0\0", 8);
  const std::string_view bits("\xff\xff\xff\x0f", 4);
  buffer jpeg = write_jpeg(tensor(element_type::u8, {48, 64, 3}));
  const std::string_view frame("\xff\xc0\x00\x11\x08", 5);
  std::memcpy(jpeg.data() + jpeg.text().find(frame) + frame.size(), "\xff\0\xff\0", 4);
  for (const auto& bomb :
       {sample("a.jpg").with_data(jpeg), patched("rgb8.png", "IHDR", 4, huge),
        patched("rgb24.bmp", "BM", 18, low), patched("map8.gif", "GIF", 6, "\xff\xff\xff\xff"),
        patched("lossless.webp", "VP8L", 9, bits), patched("lossless.avif", "ispe", 8, huge),
        patched("255.ppm", "61 37", 0, "61 \n9999999"),
        patched("rgb8.tif", {"\0\1\3\0\1\0\0\0", 8}, 8, "\xff\xff"),
        patched("rgb8-big.tif", {"\1\1\0\3", 4}, 12, "\xff\xff")}) {
    const address_space_limit limit(16 << 20);
    try {
      decode_image({.max_pixels = 1'000'000})(bomb);
      ADD_FAILURE() << bomb.key();
    } catch (const error& failure) {
      EXPECT_EQ(failure.code(), errc::limit_exceeded) << failure.what();
      EXPECT_NE(std::string_view(failure.what()).find("max_pixels = 1000000"),
                std::string_view::npos)
          << failure.what();
    }
  }
}

TEST_F(Formats, TheTextOfADamagedTiffNamesNoEmptyFile) {
  const auto wrong = patched("rgb8-none.tif", {"\x1c\1\3\0\1\0\0\0", 8}, 8, "\x01\x49");
  try {
    decode_image()(wrong);
    ADD_FAILURE() << "decoded";
  } catch (const error& failure) {
    EXPECT_EQ(std::string_view(failure.what()),
              "decode rgb8-none.tif: the TIFF's data are damaged: Bad value 18689 for "
              "\"PlanarConfiguration\" tag");
  }
}

TEST_F(Formats, DamagedFilesPrintNothing) {
  const auto seed = test::new_seed();
  SCOPED_TRACE("LADE_SEED=" + std::to_string(seed));
  random draw(seed);
  testing::internal::CaptureStderr();
  testing::internal::CaptureStdout();
  for (const auto& [file, pixels] : corpus()) {
    for (int round = 0; round < 12; ++round) {
      buffer damaged(file.data().size());
      std::memcpy(damaged.data(), file.data().data(), damaged.size());
      // Most damage where headers are.
      const auto reach =
          round % 2 == 0 ? std::min<std::size_t>(damaged.size(), 200) : damaged.size();
      for (auto changes = 1 + draw.below(4); changes > 0; --changes)
        damaged.data()[draw.below(reach)] = static_cast<std::byte>(draw());
      decode_or_refuse(sample(file.key()).with_data(damaged));
    }
  }
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

}  // namespace lade::media::formats_test
