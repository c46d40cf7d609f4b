#include "../support/resident_memory.hpp"
#include "jpeg_writer.hpp"
#include "pillow.hpp"

#include <lade/batch.hpp>
#include <lade/buffer_pool.hpp>
#include <lade/from.hpp>
#include <lade/map.hpp>
#include <lade/media/image.hpp>
#include <lade/media/png.hpp>
#include <lade/run.hpp>
#include <lade/runtime.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <random>
#include <span>
#include <string>
#include <vector>

#include <malloc.h>
#include <zlib.h>

namespace lade::media::image_memory_test {

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

TEST(ImageMemory, IsEstimatedFromTheHeaderOfAJpeg) {
  constexpr std::size_t pixels = 300 * 200;
  decode_image exact;
  const auto file = jpeg_of(200, 300);
  constexpr std::size_t luma = 448 * 13 * 16, chroma = 320 * 13 * 8;     // rows of 13 MCUs, padded
  const auto written = 64 + luma + 2 * chroma + file.data().size() + 8;  // the scan and its end
  EXPECT_EQ(exact.memory_needed(file), 3 * pixels + written);
  EXPECT_EQ(exact.memory_needed(jpeg_of(200, 300, true)), 3 * pixels + 3 * pixels);
  auto scans = sample("a.jpg").with_data(write_jpeg(black(200, 300), {.separate_scans = true}));
  EXPECT_EQ(exact.memory_needed(scans), 3 * pixels + 3 * pixels);
  decode_image fast({.width = 32, .height = 32, .fast = true});
  EXPECT_EQ(fast.memory_to_write(file), written);
  EXPECT_EQ(fast.memory_needed(file), 3 * 32 * 32 + written);
}

static tensor noise(std::int64_t height, std::int64_t width) {
  tensor image(element_type::u8, {height, width, 3});
  std::minstd_rand random(1);
  auto* bytes = image.data<std::uint8_t>();
  const auto count = image.spec().bytes();
  for (std::size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::uint8_t>(random() >> 16);
  return image;
}

// Peak of the memory that a run of one image notes.
static std::size_t peak_of(const sample& image, const image_options& options) {
  runtime runtime({.threads = 1, .memory_bytes = std::size_t{1} << 30});
  const auto images = from(std::vector<sample>{image}) | map(decode_image(options));
  for (auto& each : runtime.run(images, {.on_error = on_error::skip})) EXPECT_EQ(each.rank(), 3u);
  return runtime.memory().stats().peak_bytes;
}

TEST(ImageMemory, OfAJpegHoldsNoneOfTheBytesBehindIt) {
  const auto file = write_jpeg(black(300, 400));
  buffer longer(file.bytes().size() + (std::size_t{16} << 20));
  std::memset(longer.data(), 0, longer.size());
  std::memcpy(longer.data(), file.data(), file.size());
  const auto image = sample("a.jpg").with_data(std::move(longer));
  constexpr std::size_t most = std::size_t{4} << 20;
  EXPECT_LT(decode_image().memory_needed(image), most);
  EXPECT_LT(peak_of(image, {}), most);
}

// A JPEG whose headers have been changed: to be large, with a restart behind every `interval` MCUs.
static sample announcing_restarts(unsigned interval) {
  auto data = write_jpeg(black(50, 50), {.restart_rows = 1});
  const auto put = [&](const char* marker, std::size_t behind, unsigned number) {
    auto* at = std::ranges::search(data.bytes(), std::as_bytes(std::span(marker, 2))).data();
    at[behind] = std::byte(number >> 8);
    at[behind + 1] = std::byte(number & 255);
  };
  put("\xff\xc0", 5, 16'000);  // height
  put("\xff\xc0", 7, 16'000);
  put("\xff\xdd", 4, interval);
  return sample("restarts.jpg").with_data(std::move(data));
}

TEST(ImageMemory, OfAJpegIsNotThatOfMoreRestartsThanTheFileMayHave) {
  const decode_image decode({.width = 8, .height = 8, .max_pixels = 1 << 28});
  const auto many = announcing_restarts(1);
  const auto few = decode.memory_needed(announcing_restarts(60'000));
  EXPECT_GT(few, 0U);
  EXPECT_LT(decode.memory_needed(many), few + 8 * many.data().size());
}

TEST(ImageMemory, OfAJpegWithTooManyPixelsIsNotAllocated) {
  const auto image = sample("a.jpg").with_data(write_jpeg(noise(1400, 1600), {.quality = 100}));
  ASSERT_GT(image.data().size(), std::size_t{2} << 20);
  EXPECT_EQ(peak_of(image, {.max_pixels = 1400 * 1600 - 1}), 0u);
  EXPECT_GT(peak_of(image, {.max_pixels = 1400 * 1600}), 0u);
}

TEST(ImageMemory, OfALargeJpegIsThatOfAFewRows) {
  const auto file = jpeg_of(3000, 4000);
  constexpr std::size_t planes = std::size_t{4000} * 3000 * 3 / 2;
  const decode_image exact({.width = 32, .height = 32}),
      fast({.width = 32, .height = 32, .fast = true});
  EXPECT_LT(exact.memory_to_write(file), file.data().size() + planes / 10);
  EXPECT_GT(fast.memory_to_write(file), file.data().size() + planes);
}

TEST(ImageMemory, IsEstimatedFromTheHeadersOfOtherKinds) {
  decode_image small({.width = 8, .height = 8});
  auto zeros = [](std::size_t count) { return std::string(count, '\0'); };
  auto written = [&](const std::string& bytes) { return small.memory_to_write(header(bytes)); };
  EXPECT_EQ(written("\x89PNG\r\n\x1a\n" + zeros(4) + "IHDR" + zeros(3) + "\x64" + zeros(3) +
                    "\x32" + "\x10\x06" + zeros(3)),
            100 * 50 * (8 + 3) + 29)
      << "with a copy of the file";
  EXPECT_EQ(written("GIF89a\x64" + zeros(1) + "\x32" + zeros(1)), 100 * 50 * 4 + 10);
  EXPECT_EQ(written("BM" + zeros(16) + "\x64" + zeros(3) + "\xce\xff\xff\xff"), 100 * 50 * 3);
  EXPECT_EQ(
      written("RIFF" + zeros(4) + "WEBPVP8X" + zeros(8) + "\x63" + zeros(2) + "\x31" + zeros(2)),
      100 * 50 * 3);
  EXPECT_EQ(written("II*" + zeros(1) + "\x08" + zeros(3) + "\x02" + zeros(1) +
                    std::string("\x00\x01\x03\x00\x01\x00\x00\x00\x64\x00\x00\x00", 12) +
                    std::string("\x01\x01\x03\x00\x01\x00\x00\x00\x32\x00\x00\x00", 12)),
            100 * 50 * 1);
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

// What is free in the arenas of all threads, and the system does not get back.
static std::size_t kept_by_malloc() { return mallinfo2().fordblks; }

TEST(ImageMemory, CoefficientsOfLargeImagesDoNotStayInTheArenasOfTheThreads) {
  constexpr std::size_t most = std::size_t{8} << 20;  // those of one image
  auto photo = jpeg_of(1400, 1600, true);
  auto before = kept_by_malloc();
  runtime runtime({.threads = 8, .memory_bytes = most});
  auto images = from(std::vector<sample>(16, photo)) | map(decode_image(), {.concurrency = 8});
  std::size_t count = 0;
  for (auto& image : runtime.run(images)) count += image.rank() == 3 ? 1 : 0;
  EXPECT_EQ(count, 16u);
  EXPECT_LT(kept_by_malloc(), before + most);
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

// A small result; in its own size where rows become columns, which takes memory of that size.
static decode_image decode_of(const std::filesystem::path& path) {
  const bool turned = path.filename().string().starts_with("turned.");
  return decode_image({.width = turned ? 0 : 64, .height = turned ? 0 : 64});
}

TEST(ImageMemory, OfLargeImagesOfEveryKindStaysWithinTheEstimate) {
  if (!have_makers()) GTEST_SKIP() << "a tool that makes files of some format is not installed";
  if (!test::memory_can_be_measured()) GTEST_SKIP() << "the peak of the memory cannot be measured";
  mallopt(M_PERTURB, 0);  // which Meson sets: malloc would write what decoders only ask for
  const temporary_directory directory;
  const auto script = tests_directory() / "media/formats.py";
  const auto line = "/usr/bin/python3 " + script.string() + " --large " + directory.path().string();
  ASSERT_EQ(std::system(line.c_str()), 0);
  constexpr std::size_t for_all_else = std::size_t{3} << 20;
  const auto files = files_in(directory.path());
  for (const auto& path : files)
    decode_of(path)(load(path));  // maps the libraries' code and tables
  for (const auto& path : files) {
    const auto file = load(path);
    const auto decode = decode_of(path);
    const auto growth = test::growth_during([&] { decode(file); });
    EXPECT_LE(growth, decode.memory_needed(file) + for_all_else) << file.key();
    // Told too much, images wait for each other without need.
    EXPECT_GE(3 * (growth + for_all_else), decode.memory_needed(file)) << file.key();
  }
}

static std::string big_endian(std::size_t number) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(number >> shift & 0xff);
  return bytes;
}

static std::string deflated(const std::string& bytes) {
  auto size = compressBound(static_cast<uLong>(bytes.size()));
  std::string result(size, '\0');
  compress(reinterpret_cast<Bytef*>(result.data()), &size,
           reinterpret_cast<const Bytef*>(bytes.data()), static_cast<uLong>(bytes.size()));
  result.resize(size);
  return result;
}

static std::string png_chunk(const std::string& name, const std::string& body) {
  const auto named = name + body;
  const auto sum =
      crc32(0, reinterpret_cast<const Bytef*>(named.data()), static_cast<uInt>(named.size()));
  return big_endian(body.size()) + named + big_endian(sum);
}

// 8 x 8 pixels of grey, and a chunk before them.
static std::string small_png_with(const std::string& chunk) {
  const std::string grey_of_8_bits("\x08\0\0\0\0", 5);
  return "\x89PNG\r\n\x1a\n" + png_chunk("IHDR", big_endian(8) + big_endian(8) + grey_of_8_bits) +
         chunk + png_chunk("IDAT", deflated(std::string(8 * 9, '\0'))) + png_chunk("IEND", "");
}

TEST(ImageMemory, OfAPngHoldsNoneOfItsInflatedTextAndProfiles) {
  if (!test::memory_can_be_measured()) GTEST_SKIP() << "the peak of the memory cannot be measured";
  constexpr std::size_t inflated = std::size_t{64} << 20;
  const auto bomb = deflated(std::string(inflated, 'a'));
  const std::string zero(1, '\0');
  const std::string chunks[] = {
      png_chunk("zTXt", "Comment" + zero + zero + bomb),
      png_chunk("zTXt", "Raw profile type exif" + zero + zero + bomb),
      png_chunk("iTXt", "XML:com.adobe.xmp" + zero + '\1' + zero + zero + zero + bomb),
      png_chunk("iCCP", "icc" + zero + zero + bomb),
  };
  for (const auto& chunk : chunks) {
    const auto file = header(small_png_with(chunk));
    const decode_image decode;
    EXPECT_LT(test::growth_during([&] { decode(file); }), inflated / 8) << chunk.substr(4, 12);
  }
}

TEST(ImageMemory, OfATiffHoldsNoMoreThanTheFileWhateverItsTagsShare) {
  if (!test::memory_can_be_measured()) GTEST_SKIP() << "the peak of the memory cannot be measured";
  const auto little = [](std::size_t number, int bytes) {
    std::string text;
    for (int i = 0; i < bytes; ++i) text += static_cast<char>(number >> 8 * i & 0xff);
    return text;
  };
  const auto entry = [&](std::size_t tag, std::size_t type, std::size_t count, std::size_t value) {
    return little(tag, 2) + little(type, 2) + little(count, 4) + little(value, 4);
  };
  constexpr std::size_t tags = 1000;
  constexpr std::size_t shared = 100'000;
  auto directory = entry(256, 3, 1, 1) + entry(257, 3, 1, 1) + entry(258, 3, 1, 8) +
                   entry(259, 3, 1, 1) + entry(262, 3, 1, 1) + entry(273, 4, 1, 8) +
                   entry(277, 3, 1, 1) + entry(278, 3, 1, 1) + entry(279, 4, 1, 1);
  for (std::size_t i = 0; i < tags; ++i) directory += entry(40'000 + i, 1, shared, 8);
  const auto file =
      header("II*" + std::string(1, '\0') + little(8 + shared, 4) + std::string(shared, 'a') +
             little(9 + tags, 2) + directory + little(0, 4));
  const decode_image decode;
  EXPECT_LT(test::growth_during([&] { EXPECT_THROW(decode(file), error); }), tags * shared / 8);
}

// Every size that the boxes of an AVIF name becomes `size`, as their bytes.
static void set_sizes_of_boxes(std::string& file, const std::string& size) {
  for (auto at = file.find("ispe"); at != file.npos; at = file.find("ispe", at + 4))
    file.replace(at + 8, 8, size + size);
  const auto fixed = size.substr(2) + std::string(2, '\0');  // 16.16
  constexpr std::size_t to_width = 4 + 88;                   // of version 1
  for (auto at = file.find("tkhd"); at != file.npos; at = file.find("tkhd", at + 4))
    file.replace(at + to_width, 8, fixed + fixed);
}

// An AVIF of 2000 x 1500 pixels, of one image or two, whose boxes say that it has 8 x 8.
static std::string avif_that_says_it_is_small(const std::string& options, int images) {
  const temporary_directory directory;
  const auto source = directory.write("a.png", encode_png(black(1500, 2000))).string();
  const auto target = (directory.path() / "a.avif").string();
  auto line = "avifenc -s 10 -y 400 " + options;
  for (int i = 0; i < images; ++i) line += " " + source;
  if (std::system((line + " " + target + " > /dev/null").c_str()) != 0) return {};
  std::string file(load(target).data().text());
  set_sizes_of_boxes(file, big_endian(8));
  return file;
}

TEST(ImageMemory, OfAnAvifWhoseBoxesHideItsSizeIsNotAllocated) {
  if (!have_makers()) GTEST_SKIP() << "a tool that makes files of some format is not installed";
  if (!test::memory_can_be_measured()) GTEST_SKIP() << "the peak of the memory cannot be measured";
  const auto still = avif_that_says_it_is_small("", 1);
  const auto sequence = avif_that_says_it_is_small("", 2);
  auto only_tracks = sequence;
  only_tracks.replace(only_tracks.find("av01"), 4, "none");  // the type of the still image
  const auto grid = avif_that_says_it_is_small("--grid 2x1", 1);
  for (const auto& bytes : {still, sequence, only_tracks, grid}) {
    const auto file = header(bytes);
    const decode_image decode({.max_pixels = 1'000'000});
    const auto growth = test::growth_during([&] {
      EXPECT_THAT([&] { decode(file); },
                  testing::ThrowsMessage<error>(testing::AllOf(
                      testing::HasSubstr(" x 1500 pixels are more than max_pixels = 1000000"),
                      testing::StartsWith("decode header: "))));
    });
    EXPECT_LT(growth, std::size_t{8} << 20);
  }
}

TEST(ImageMemory, OfAnAvifIsEstimatedFromItsFrames) {
  if (!have_makers()) GTEST_SKIP() << "a tool that makes files of some format is not installed";
  const decode_image decode({.width = 8, .height = 8});
  const auto file = header(avif_that_says_it_is_small("", 1));
  EXPECT_GE(decode.memory_to_write(file), std::size_t{2000} * 1500 * 4);
}

static std::string box(const std::string& type, const std::string& contents) {
  return big_endian(8 + contents.size()) + type + contents;
}

TEST(ImageMemory, OfAnAvifIsThatOfItsLargestItem) {
  const std::string zeros(4, '\0');
  const auto size = [&](std::size_t width, std::size_t height) {
    return box("ispe", zeros + big_endian(width) + big_endian(height));
  };
  const auto file = header(box("ftyp", "avif" + zeros + "avif") +
                           box("meta", zeros + size(10'000, 100) + size(100, 10'000)));
  const decode_image decode({.max_pixels = 2'000'000});
  EXPECT_GE(decode.memory_needed(file), std::size_t{3'000'000});
  EXPECT_LE(decode.memory_needed(file), std::size_t{100'000'000});
}

TEST(ImageMemory, OfAnAvifWithTooManyChunksIsNotAllocated) {
  auto boxes =
      box("stbl", box("stco", std::string(80'008, '\0')) + box("stsc", std::string(240'008, '\0')));
  for (const auto* type : {"minf", "mdia", "trak", "moov"}) boxes = box(type, boxes);
  const auto file = header(box("ftyp", "avis" + std::string(4, '\0') + "avis") + boxes);
  EXPECT_THAT([&] { decode_image()(file); },
              testing::ThrowsMessage<error>(testing::HasSubstr("too many chunks")));
}

// 300 items of 65,535 extents, each of which takes no byte.
static std::string meta_of_empty_extents() {
  constexpr std::size_t items = 300;
  const std::string zeros(8, '\0');
  auto location = zeros.substr(0, 6) + big_endian(items).substr(2);
  for (std::size_t i = 1; i <= items; ++i)
    location += big_endian(i).substr(2) + zeros.substr(0, 2) + "\xff\xff";
  const auto handler = zeros + "pict" + zeros + zeros.substr(0, 5);
  return box("meta", zeros.substr(0, 4) + box("hdlr", handler) + box("iloc", location));
}

TEST(ImageMemory, OfAnAvifHoldsNoExtentsWithoutBytes) {
  if (!test::memory_can_be_measured()) GTEST_SKIP() << "the peak of the memory cannot be measured";
  const auto still = box("ftyp", "avif" + std::string(4, '\0') + "avif");
  const auto sequence = box("ftyp", "avis" + std::string(4, '\0') + "avis");
  const auto meta = meta_of_empty_extents();
  for (const auto& bytes : {still + meta, sequence + box("moov", box("trak", meta))}) {
    const auto file = header(bytes);
    const auto growth = test::growth_during([&] { EXPECT_THROW(decode_image()(file), error); });
    EXPECT_LT(growth, std::size_t{8} << 20) << bytes.substr(8, 4);
  }
}

}  // namespace lade::media::image_memory_test
