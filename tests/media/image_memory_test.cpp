#include "jpeg_writer.hpp"

#include <lade/batch.hpp>
#include <lade/buffer_pool.hpp>
#include <lade/from.hpp>
#include <lade/map.hpp>
#include <lade/media/image.hpp>
#include <lade/run.hpp>
#include <lade/runtime.hpp>

#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <string>
#include <vector>

namespace lade::media {

static tensor black(std::int64_t height, std::int64_t width) {
  tensor image(element_type::u8, {height, width, 3});
  std::memset(image.bytes(), 0, image.spec().bytes());
  return image;
}

static sample jpeg_of(std::int64_t height, std::int64_t width, bool progressive = false) {
  return sample("a.jpg").with_data(write_jpeg(black(height, width), {.progressive = progressive}));
}

// A file of which only the header is right.
static sample header(const std::string& bytes) {
  buffer file(bytes.size());
  std::memcpy(file.data(), bytes.data(), bytes.size());
  return sample("header").with_data(std::move(file));
}

TEST(ImageMemory, IsToldByTheHeaderOfAJpeg) {
  constexpr std::size_t pixels = 300 * 200;
  decode_image exact;
  EXPECT_EQ(exact.memory_needed(jpeg_of(200, 300)), 3 * pixels);
  EXPECT_EQ(exact.memory_needed(jpeg_of(200, 300, true)), 3 * pixels + 3 * pixels);
  decode_image fast({.width = 32, .height = 32, .fast = true});
  EXPECT_EQ(fast.memory_to_write(jpeg_of(200, 300)), 3 * pixels / 2);
  EXPECT_EQ(fast.memory_needed(jpeg_of(200, 300)), 3 * 32 * 32 + 3 * pixels / 2);
}

TEST(ImageMemory, IsToldByTheHeadersOfOtherKinds) {
  decode_image small({.width = 8, .height = 8});
  auto zeros = [](std::size_t count) { return std::string(count, '\0'); };
  auto written = [&](const std::string& bytes) { return small.memory_to_write(header(bytes)); };
  EXPECT_EQ(written("\x89PNG\r\n\x1a\n" + zeros(4) + "IHDR" + zeros(3) + "\x64" + zeros(3) +
                    "\x32" + "\x10\x06" + zeros(3)),
            100 * 50 * 8);
  EXPECT_EQ(written("GIF89a\x64" + zeros(1) + "\x32" + zeros(1)), 100 * 50 * 4);
  EXPECT_EQ(written("BM" + zeros(16) + "\x64" + zeros(3) + "\xce\xff\xff\xff"), 100 * 50 * 4);
  EXPECT_EQ(
      written("RIFF" + zeros(4) + "WEBPVP8X" + zeros(8) + "\x63" + zeros(2) + "\x31" + zeros(2)),
      100 * 50 * 4);
  EXPECT_EQ(written("II*" + zeros(1) + "\x08" + zeros(3) + "\x02" + zeros(1) +
                    std::string("\x00\x01\x03\x00\x01\x00\x00\x00\x64\x00\x00\x00", 12) +
                    std::string("\x01\x01\x03\x00\x01\x00\x00\x00\x32\x00\x00\x00", 12)),
            100 * 50 * 4);
  EXPECT_EQ(written("text"), 0u);
  EXPECT_EQ(written(""), 0u);
  EXPECT_EQ(written("GIF89a\xff\xff\xff\xff"), 0u) << "it has too many pixels and will be refused";
}

TEST(ImageMemory, DecodedImagesAreBoundedWhateverTheConcurrency) {
  constexpr std::size_t image_bytes = std::size_t{3} * 400 * 300;
  constexpr std::size_t budget = 2 * image_bytes + image_bytes / 2;
  auto photo = jpeg_of(300, 400, true);
  constexpr std::size_t need = 2 * image_bytes;  // with the coefficients
  for (unsigned concurrency : {1u, 8u}) {
    runtime runtime({.threads = 8, .memory_bytes = budget});
    auto images = from(std::vector<sample>(24, photo)) |
                  map(decode_image(), {.concurrency = concurrency, .buffer = 16});
    std::size_t decoded = 0;
    for (auto& image : runtime.run(images)) decoded += image.spec().bytes();
    EXPECT_EQ(decoded, 24 * image_bytes);
    EXPECT_LE(runtime.memory().stats().peak_bytes, budget + need + need / 8) << concurrency;
    EXPECT_EQ(runtime.memory().stats().used_bytes, 0u);
  }
}

TEST(ImageMemory, WhatDecodersTakeCountsBesideTheBatch) {
  constexpr std::size_t coefficients = std::size_t{3} * 400 * 300;
  auto photo = jpeg_of(300, 400, true);
  runtime runtime({.threads = 8, .memory_bytes = coefficients});
  auto batches = from(std::vector<sample>(32, photo)) |
                 batch_into(decode_image({.width = 8, .height = 8}), {.size = 4, .concurrency = 8});
  std::size_t count = 0;
  for (auto& batch : runtime.run(batches)) count += batch.size();
  EXPECT_EQ(count, 32u);
  EXPECT_GE(runtime.memory().stats().peak_bytes, coefficients);
  EXPECT_LE(runtime.memory().stats().peak_bytes, 5 * coefficients / 2);
}

}  // namespace lade::media
