// Files of every kind that formats.py makes, against the pixels that they were made from.

#include "../support/seed.hpp"
#include "pillow.hpp"

#include <lade/error.hpp>
#include <lade/media/image.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace lade::media {

struct known_image {
  sample file;
  tensor pixels;
};

static bool have_makers() {
  return std::system(
             "/usr/bin/python3 -c 'import numpy, tifffile, PIL' 2>/dev/null && "
             "command -v tiffcp avifenc webpmux /usr/bin/convert > /dev/null") == 0;
}

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

class Formats : public testing::Test {
 protected:
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
  for (const auto& [extension, least] : std::map<std::string, int>{
           {".tif", 150}, {".png", 50}, {".gif", 40}, {".bmp", 35}, {".webp", 10}, {".avif", 25}})
    EXPECT_GE(kinds[extension], least) << extension;
}

// The only format that a library with global state decodes.
TEST_F(Formats, NoPngLeavesATraceInAnyOther) {
  std::vector<known_image> images;
  for (const auto& image : corpus())
    if (extension_of(image) == ".png") images.push_back(image);
  for (const auto& first : images)
    for (const auto& [file, pixels] : images) {
      decode_image()(first.file);
      ASSERT_EQ(fault_of(file, pixels), "") << file.key() << " after " << first.file.key();
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
      if (decoded) EXPECT_EQ(difference(*decoded, pixels), 0) << file.key() << " of " << kept;
    }
  }
}

TEST_F(Formats, DamagedFilesPrintNothing) {
  const auto seed = test::new_seed();
  SCOPED_TRACE("LADE_SEED=" + std::to_string(seed));
  random draw(seed);
  testing::internal::CaptureStderr();
  testing::internal::CaptureStdout();
  for (const auto& [file, pixels] : corpus()) {
    // dav1d prints what is wrong with AV1 data, and libavif has no way to tell it not to.
    if (file.key().ends_with(".avif")) continue;
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

}  // namespace lade::media
