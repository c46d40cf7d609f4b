#include "../../media/crop.hpp"
#include "../../media/jpeg_headers.hpp"
#include "images.hpp"
#include "jpeg_writer.hpp"
#include "pillow.hpp"

#include <lade/batch.hpp>
#include <lade/byte_reader.hpp>
#include <lade/error.hpp>
#include <lade/from.hpp>
#include <lade/map.hpp>
#include <lade/media/image.hpp>
#include <lade/media/png.hpp>
#include <lade/run.hpp>
#include <lade/runtime.hpp>
#include <lade/sync_wait.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <malloc.h>

namespace lade::media::image_test {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::ThrowsMessage;

static tensor photo_of(std::int64_t height, std::int64_t width) {
  const tensor photo = decode_image()(load(photos()[0]));
  tensor out(element_type::u8, {height, width, 3});
  resize(photo, out);
  return out;
}

static sample named(std::string key, buffer data) {
  return sample(std::move(key)).with_data(std::move(data));
}

static buffer bytes_of(std::string_view text) {
  buffer data(text.size());
  std::memcpy(data.data(), text.data(), text.size());
  return data;
}

// The peak signal to noise ratio of two u8 tensors, in dB.
static double psnr(const tensor& a, const tensor& b) {
  double sum = 0;
  const auto count = a.spec().elements();
  for (std::size_t i = 0; i < count; ++i) {
    const double error = a.data<std::uint8_t>()[i] - b.data<std::uint8_t>()[i];
    sum += error * error;
  }
  return 10 * std::log10(255.0 * 255.0 * static_cast<double>(count) / sum);
}

// Whether a file is a JPEG that lade leaves to libjpeg-turbo.
static bool is_left(const sample& file) {
  const auto bytes = file.data().bytes();
  const bool is_jpeg =
      bytes.size() > 1 && bytes[0] == std::byte{0xff} && bytes[1] == std::byte{0xd8};
  return is_jpeg && !read_jpeg_headers(bytes);
}

// Decoded by lade itself, if it takes the file: libjpeg-turbo makes the same pixels.
static void expect_equal(const std::vector<std::filesystem::path>& files,
                         const decode_image& decode, const std::vector<tensor>& expected,
                         int levels) {
  ASSERT_EQ(files.size(), expected.size());
  for (std::size_t i = 0; i < files.size(); ++i) {
    const sample file = load(files[i]);
    const auto left = decode.jpegs_by_libjpeg() + is_left(file);
    EXPECT_NO_THROW(EXPECT_LE(difference(decode(file), expected[i]), levels) << files[i].filename())
        << files[i].filename();
    EXPECT_EQ(decode.jpegs_by_libjpeg(), left) << files[i].filename();
  }
}

TEST(Image, SpecIsTheShapeOfTheResult) {
  EXPECT_EQ(decode_image({.width = 320, .height = 224}).spec(),
            (tensor_spec{element_type::u8, {224, 320, 3}}));
  EXPECT_EQ(decode_image({.width = 320,
                          .height = 224,
                          .colour = image_colour::grey,
                          .layout = image_layout::chw,
                          .type = element_type::bf16})
                .spec(),
            (tensor_spec{element_type::bf16, {1, 224, 320}}));
}

TEST(Image, OptionsThatCannotWorkAreNamed) {
  const auto refused = [](const image_options& options, const char* text) {
    EXPECT_THAT([&] { decode_image{options}; }, ThrowsMessage<error>(HasSubstr(text)));
  };
  refused({.width = 224}, "width and height");
  refused({.width = -1, .height = 224}, "width and height");
  refused({.fit = image_fit::random_crop}, "fit");
  refused({.width = 224, .height = 224, .shorter_side = 200}, "shorter_side");
  refused({.min_area = 0.5, .max_area = 0.4}, "min_area");
  refused({.min_aspect = 0}, "min_aspect");
  refused({.flip = 1.5}, "flip");
  refused({.type = element_type::i32}, "type");
  refused({.mean = imagenet_mean}, "mean and stddev need");
  refused({.type = element_type::f32, .stddev = {0, 1, 1}}, "stddev");
  refused({.max_pixels = 0}, "max_pixels");
  refused({.width = 8, .height = 8, .fit = image_fit{4}}, "fit is no value of image_fit");
  refused({.colour = image_colour{4}}, "colour is no value of image_colour");
  refused({.layout = image_layout{2}}, "layout is no value of image_layout");
}

TEST(Image, PhotosAreThoseOfPillow) {
  if (!have_pillow()) GTEST_SKIP() << "python3-pil is not installed";
  expect_equal(photos(), decode_image(), pillow("decode", {"RGB"}, photos()), 0);
}

// Files of every kind of JPEG, at sizes that no block divides.
static std::vector<std::filesystem::path> write_jpegs(const temporary_directory& directory) {
  const tensor pixels = photo_of(85, 123);
  tensor four(element_type::u8, {85, 82, 4});
  std::memcpy(four.bytes(), photo_of(85, 123).bytes(), 85 * 82 * 3);
  std::memcpy(four.bytes() + 85 * 82 * 3, photo_of(85, 123).bytes(), 85 * 82);
  const tensor grey(element_type::u8, {85, 123, 1});
  std::memcpy(grey.bytes(), pixels.bytes(), 85 * 123);
  std::vector<std::filesystem::path> files;
  const auto add = [&](const char* name, const tensor& image, const jpeg_kind& kind) {
    files.push_back(directory.write(name, write_jpeg(image, kind)));
  };
  add("420.jpg", pixels, {});
  add("422.jpg", pixels, {.sampling_y = 1});
  add("440.jpg", pixels, {.sampling_x = 1});
  add("444.jpg", pixels, {.sampling_x = 1, .sampling_y = 1});
  add("411.jpg", pixels, {.sampling_x = 4, .sampling_y = 1});
  add("progressive.jpg", pixels, {.progressive = true});
  add("restarts.jpg", pixels, {.restart_rows = 1});
  add("tiny.jpg", photo_of(1, 1), {});
  add("rgb.jpg", pixels, {.sampling_x = 1, .sampling_y = 1, .as = JCS_RGB});
  add("grey.jpg", grey, {.from = JCS_GRAYSCALE, .as = JCS_GRAYSCALE});
  add("cmyk.jpg", four, {.from = JCS_CMYK, .as = JCS_CMYK});
  add("ycck.jpg", four, {.from = JCS_CMYK, .as = JCS_YCCK});
  return files;
}

TEST(Image, IsReadFromAPartOfAnyReader) {
  auto photo = load(photos()[0]);
  buffer archive(1000 + photo.data().size() + 1000);
  std::memcpy(archive.data() + 1000, photo.data().data(), photo.data().size());
  auto whole = std::make_shared<const memory_reader>(archive, "a.tar");
  auto part = std::make_shared<const part_reader>(whole, 1000, photo.data().size(), "a.tar/b.jpg");
  const decode_image decode({.width = 224, .height = 224, .fit = image_fit::random_crop});
  EXPECT_EQ(difference(sync_wait(decode.read(part, random(1, 2))), decode(photo, random(1, 2))), 0);
  runtime runtime({.threads = 2});
  EXPECT_EQ(difference(sync_wait(runtime, decode.read(part)), decode(photo)), 0);
  EXPECT_THAT([&] { (void)sync_wait(runtime, decode.read(whole)); },
              ThrowsMessage<error>(HasSubstr("decode a.tar: ")));
}

TEST(Image, EveryKindOfJpegIsThatOfPillow) {
  if (!have_pillow()) GTEST_SKIP() << "python3-pil is not installed";
  const temporary_directory directory;
  const auto files = write_jpegs(directory);
  expect_equal(files, decode_image(), pillow("decode", {"RGB"}, files), 0);
}

TEST(Image, ProgressiveJpegsAndThoseOfFourInksAreLeftToLibjpegAndNoOthers) {
  const temporary_directory directory;
  std::vector<std::string> left;
  const auto files = write_jpegs(directory);
  for (const auto& file : files)
    if (is_left(load(file))) left.push_back(file.filename());
  if (is_left(load(photos()[0])))  // in the program that leaves all of them
    EXPECT_EQ(left.size(), files.size());
  else
    EXPECT_THAT(left, ElementsAre("progressive.jpg", "cmyk.jpg", "ycck.jpg"));
}

TEST(Image, GreyIsTheLumaOfAJpeg) {
  const auto in = named(
      "444.jpg", write_jpeg(photo_of(85, 123), {.quality = 100, .sampling_x = 1, .sampling_y = 1}));
  const tensor colour = decode_image()(in);
  const tensor grey = decode_image({.colour = image_colour::grey})(in);
  ASSERT_EQ(grey.shape(), dimensions({85, 123, 1}));
  for (int i = 0; i < 85 * 123; ++i) {
    const auto* rgb = colour.data<std::uint8_t>() + 3 * i;
    ASSERT_NEAR(grey.data<std::uint8_t>()[i], 0.299 * rgb[0] + 0.587 * rgb[1] + 0.114 * rgb[2], 2);
  }
}

TEST(Image, BgrHasTheChannelsOfRgbInReverse) {
  const auto photo = load(photos()[0]);
  for (const bool fast : {false, true}) {
    const auto rgb = decode_image({.width = 20, .height = 10, .fast = fast})(photo);
    const auto bgr =
        decode_image({.width = 20, .height = 10, .colour = image_colour::bgr, .fast = fast})(photo);
    for (std::size_t i = 0; i < 200; ++i)
      for (std::size_t c = 0; c < 3; ++c)
        ASSERT_EQ(bgr.data<std::uint8_t>()[3 * i + c], rgb.data<std::uint8_t>()[3 * i + 2 - c]);
  }
}

TEST(Image, LosslessFormatsAreThoseOfPillow) {
  if (!have_pillow()) GTEST_SKIP() << "python3-pil is not installed";
  const temporary_directory directory;
  pillow("make_lossless", {photos()[1].string(), directory.path().string()});
  const auto files = files_in(directory.path());
  ASSERT_GT(files.size(), 30u);
  expect_equal(files, decode_image(), pillow("decode", {"RGB"}, files), 0);
}

TEST(Image, GreyOfOtherFormatsIsThatOfPillow) {
  if (!have_pillow()) GTEST_SKIP() << "python3-pil is not installed";
  const temporary_directory directory;
  pillow("make_lossless", {photos()[1].string(), directory.path().string()});
  const std::vector<std::filesystem::path> files{
      directory.path() / "rgb.png", directory.path() / "grey.png", directory.path() / "deep.png"};
  expect_equal(files, decode_image({.colour = image_colour::grey}), pillow("decode", {"L"}, files),
               0);
}

TEST(Image, IsTurnedAsExifSays) {
  if (!have_pillow()) GTEST_SKIP() << "python3-pil is not installed";
  const temporary_directory directory;
  pillow("make_oriented", {photos()[1].string(), directory.path().string()});
  const auto files = files_in(directory.path());
  ASSERT_EQ(files.size(), 32u);
  expect_equal(files, decode_image(), pillow("orient", {}, files), 0);
  auto others = files;
  std::erase_if(others, [](const auto& file) { return file.extension() == ".tif"; });
  expect_equal(others, decode_image({.orient = false}), pillow("decode", {"RGB"}, others), 0);
}

TEST(Image, CentreCropIsThatOfTorchvision) {
  if (!have_pillow()) GTEST_SKIP() << "python3-pil is not installed";
  expect_equal(photos(), decode_image({.width = 224, .height = 224, .fit = image_fit::centre_crop}),
               pillow("centre_crop", {"256", "224"}, photos()), 1);
}

TEST(Image, FastDiffersByNoiseOnly) {
  for (int size : {350, 224, 112, 64}) {
    const image_options exact{.width = size, .height = size};
    image_options fast = exact;
    fast.fast = true;
    for (const auto& photo : photos())
      EXPECT_GE(psnr(decode_image(exact)(load(photo)), decode_image(fast)(load(photo))), 45)
          << photo << " at " << size;
  }
}

// Every kind of JPEG, with large crops, for which planes are decoded.
TEST(Image, FastWorksForEveryKindOfJpeg) {
  const temporary_directory directory;
  image_options options{.width = 40, .height = 40, .fit = image_fit::random_crop, .min_area = 0.7};
  for (const auto& file : write_jpegs(directory))
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      options.fast = false;
      const tensor exact = decode_image(options)(load(file), random(seed));
      options.fast = true;
      EXPECT_GE(psnr(exact, decode_image(options)(load(file), random(seed))), 30)
          << file.filename() << " " << seed;
    }
}

// The part of a whole decoded image that `crop` names, resized without any decoder's help.
static tensor resized_part(const tensor& whole, const image_crop& crop) {
  const auto first = whole[crop.y.low][crop.x.low].bytes();
  const tensor part({element_type::u8, {crop.y.high - crop.y.low, crop.x.high - crop.x.low, 3}},
                    whole.strides(), whole.memory(), first);
  tensor out(element_type::u8, {crop.height, crop.width, 3});
  resize(part, out, {.flip = crop.turn.mirror_x});
  return out;
}

TEST(Image, CropsAreTheSamePixelsAsInTheWholeImage) {
  const temporary_directory directory;
  const image_options options{.width = 20, .height = 20, .fit = image_fit::random_crop};
  for (const auto& file : write_jpegs(directory)) {
    const tensor whole = decode_image()(load(file));
    const auto height = static_cast<int>(whole.shape()[0]);
    const auto width = static_cast<int>(whole.shape()[1]);
    for (std::uint64_t seed = 0; seed < 100; ++seed) {
      const auto crop = plan_crop(width, height, {}, options, random(seed));
      const tensor decoded = decode_image(options)(load(file), random(seed));
      ASSERT_EQ(difference(decoded, resized_part(whole, crop)), 0)
          << file.filename() << " " << seed;
    }
  }
}

TEST(Image, IsRandomIfItsPixelsDependOnTheDraw) {
  const sample photo = load(photos()[0]);
  for (auto fit : {image_fit::stretch, image_fit::centre_crop, image_fit::random_crop}) {
    const decode_image decode({.width = 24, .height = 16, .fit = fit});
    const tensor first = decode(photo, random(0));
    bool depends = false;
    for (std::uint64_t seed = 1; seed < 8; ++seed)
      depends = depends || difference(decode(photo, random(seed)), first) > 0;
    EXPECT_EQ(decode.is_random(), depends);
  }
}

TEST(Image, IsWrittenIntoItsSlotOfABatch) {
  const decode_image decode({.width = 30, .height = 20});
  const tensor batch(element_type::u8, decode.spec().shape.prepend(3));
  std::memset(batch.bytes(), 7, batch.spec().bytes());
  decode(load(photos()[0]), batch[1]);
  EXPECT_EQ(difference(batch[1], decode(load(photos()[0]))), 0);
  for (int i = 0; i < 20 * 30 * 3; ++i) {
    ASSERT_EQ(batch[0].data<std::uint8_t>()[i], 7);
    ASSERT_EQ(batch[2].data<std::uint8_t>()[i], 7);
  }
}

TEST(Image, ASlotOfAnotherShapeIsRefused) {
  const decode_image decode({.width = 30, .height = 20});
  EXPECT_THAT([&] { decode(load(photos()[0]), tensor(element_type::u8, {30, 20, 3})); },
              ThrowsMessage<error>(HasSubstr("the slot is u8[30, 20, 3]")));
}

TEST(Image, ExtremeShapesAreDecoded) {
  for (const tensor& pixels : {photo_of(1, 5000), photo_of(5000, 1), photo_of(1, 1)})
    for (auto fit : {image_fit::stretch, image_fit::centre_crop, image_fit::random_crop})
      for (bool fast : {false, true})
        EXPECT_NO_THROW(decode_image({.width = 224, .height = 224, .fit = fit, .fast = fast})(
            named("thin.jpg", write_jpeg(pixels)), random(3)));
}

// The same picture in every format that has a decoder.
static std::vector<sample> good_samples() {
  const tensor pixels = photo_of(48, 64);
  std::vector<sample> samples{named("good.jpg", write_jpeg(pixels)),
                              named("progressive.jpg", write_jpeg(pixels, {.progressive = true}))};
  if (!have_pillow()) return samples;
  const temporary_directory directory;
  pillow("make_lossless", {photos()[1].string(), directory.path().string()});
  for (const char* name : {"rgb.png", "one.gif", "rgb.bmp", "rgb.webp", "lossy.webp",
                           "tiff_lzw.tif", "tiff_adobe_deflate.tif", "raw.tif", "rgb.ppm"})
    samples.push_back(load(directory.path() / name));
  return samples;
}

TEST(Image, CutOffFilesAreErrorsThatNameTheSampleAndTheNextOneDecodes) {
  const decode_image decode({.fast = true});
  const decode_image exact;
  for (const auto& good : good_samples()) {
    const auto bytes = good.data().size();
    for (const auto kept : {bytes - bytes / 8, bytes / 2, bytes / 4, std::size_t{30}}) {
      const auto cut = named("cut/" + good.key(), good.data().slice(0, kept));
      EXPECT_THAT([&] { exact(cut); }, ThrowsMessage<error>(HasSubstr("decode cut/" + good.key())))
          << kept;
      EXPECT_THROW(decode(cut), error);
    }
    EXPECT_NO_THROW(exact(good)) << good.key();
    EXPECT_NO_THROW(decode(good)) << good.key();
  }
}

TEST(Image, DamageIsReportedWithTheMessageOfTheDecoder) {
  const auto good = write_jpeg(photo_of(48, 64));
  const auto cut = named("a/x.jpg", good.slice(0, good.size() / 2));
  EXPECT_THAT(
      [&] { decode_image()(cut); },
      ThrowsMessage<error>(AllOf(HasSubstr("decode a/x.jpg: "), HasSubstr("Premature end"))));
  EXPECT_EQ(decode_image({.strict = false})(cut).shape(), dimensions({48, 64, 3}));
}

// A JPEG with `bytes` inserted before the first marker `marker`.
static buffer with_extra(const buffer& file, std::string_view marker, std::string_view bytes) {
  const auto at = file.text().find(marker);
  return bytes_of(std::string(file.text().substr(0, at)).append(bytes) +
                  std::string(file.text().substr(at)));
}

TEST(Image, AWarningThatLeavesEveryPixelIntactIsCountedAndNoError) {
  const buffer good = write_jpeg(photo_of(48, 64));
  const decode_image decode;
  const tensor expected = decode(named("good.jpg", good));
  EXPECT_EQ(decode.warnings(), 0u);
  buffer odd_scan = bytes_of(good.text());
  odd_scan.data()[odd_scan.text().find("\xff\xda") + 12] = std::byte{62};  // the last coefficient
  std::uint64_t warned = 0;
  for (const auto& file : {with_extra(good, "\xff\xc4", {"\0\1\2", 3}), odd_scan}) {
    EXPECT_EQ(difference(decode_image(decode)(named("odd.jpg", file)), expected), 0);
    EXPECT_EQ(decode.warnings(), ++warned);
  }
}

static buffer with_flipped_bit(const buffer& file, std::size_t bit) {
  buffer flipped = bytes_of(file.text());
  flipped.data()[bit / 8] ^= std::byte{1} << bit % 8;
  return flipped;
}

TEST(Image, AFlippedBitThatOnlyWarnsChangesNoPixel) {
  const tensor pixels = photo_of(32, 48);
  for (const jpeg_kind& kind :
       {jpeg_kind{.restart_rows = 1}, jpeg_kind{.separate_scans = true, .restart_rows = 1},
        jpeg_kind{.progressive = true}, jpeg_kind{.progressive = true, .restart_rows = 1}}) {
    const buffer good = write_jpeg(pixels, kind);
    const tensor expected = decode_image()(named("good.jpg", good));
    for (std::size_t bit = 0; bit < 8 * good.size(); ++bit) {
      try {
        const decode_image decode;
        const tensor decoded = decode(named("flipped.jpg", with_flipped_bit(good, bit)));
        if (decode.warnings() == 0) continue;
        ASSERT_EQ(difference(decoded, expected), 0) << bit;
      } catch (const error&) {}
    }
  }
}

TEST(Image, AnUnknownTransformOfColoursIsAnError) {
  const jpeg_kind rgb{.from = JCS_RGB, .as = JCS_RGB};
  const buffer good = write_jpeg(photo_of(48, 64), rgb);
  const auto transform = good.text().find("Adobe") + 11;
  EXPECT_NO_THROW(decode_image()(named("rgb.jpg", good)));
  const auto odd = named("odd.jpg", with_flipped_bit(good, 8 * transform + 1));
  EXPECT_THAT([&] { decode_image()(odd); }, ThrowsMessage<error>(HasSubstr("odd.jpg")));
}

// Without the segments that begin with `marker`.
static buffer without(const buffer& file, std::string_view marker) {
  std::string text(file.text());
  for (auto at = text.find(marker); at != text.npos; at = text.find(marker)) {
    const auto high = static_cast<unsigned char>(text[at + 2]);
    const auto low = static_cast<unsigned char>(text[at + 3]);
    text.erase(at, 2 + std::size_t{high} * 256 + low);
  }
  return bytes_of(text);
}

TEST(Image, AJpegOfManyMoreScansThanAnyWriterMakesIsRefused) {
  const tensor grey(element_type::u8, {16, 16, 1});
  std::memset(grey.bytes(), 7, grey.spec().bytes());
  const auto of_passes = [&](int passes) {
    jpeg_kind kind{.passes = passes, .from = JCS_GRAYSCALE, .as = JCS_GRAYSCALE};
    return named("many.jpg", write_jpeg(grey, kind));
  };
  EXPECT_EQ(decode_image()(of_passes(1)).shape()[0], 16);  // 64 scans
  EXPECT_THAT([&] { decode_image()(of_passes(2)); },
              ThrowsMessage<error>(
                  "decode many.jpg: the JPEG's data are damaged: it has more than 100 scans"));
  EXPECT_EQ(decode_image()(of_passes(1)).shape()[0], 16) << "the next image";
}

TEST(Image, AJpegWithoutHuffmanTablesHasTheUsualOnes) {
  const buffer whole = write_jpeg(photo_of(48, 64));
  const auto frame = named("frame.jpg", without(whole, "\xff\xc4"));
  const tensor expected = decode_image()(named("whole.jpg", whole));
  EXPECT_EQ(difference(decode_image()(frame), expected), 0);
  decode_image()(load(photos()[0]));
  EXPECT_EQ(difference(decode_image()(frame), expected), 0) << "after another image";
}

TEST(Image, AJpegWithoutQuantisationTablesIsRefusedAlsoAfterAnother) {
  const auto file = named("frame.jpg", without(write_jpeg(photo_of(48, 64)), "\xff\xdb"));
  decode_image()(load(photos()[0]));
  EXPECT_THAT([&] { decode_image()(file); },
              ThrowsMessage<error>(HasSubstr("decode frame.jpg: the JPEG's data are damaged")));
}

// What a decoder and its thread keep is far less than what a large image takes.
TEST(Image, MemoryOfALargeImageIsFreedAfterIt) {
  const auto bytes_in_use = [] {
    const auto info = mallinfo2();
    return info.uordblks + info.hblkhd;
  };
  const auto large = named("large.jpg", write_jpeg(photo_of(3000, 4000)));
  const auto png = named("large.png", encode_png(photo_of(3000, 4000)));
  const auto before = bytes_in_use();
  for (bool fast : {false, true})
    for (const auto& file : {large, png})
      decode_image({.width = 2000, .height = 1500, .fast = fast})(file);
  EXPECT_LT(bytes_in_use(), before + (4 << 20));
}

static float value_of(element_type type, const std::byte* at) {
  std::uint16_t bits = 0;
  std::memcpy(&bits, at, sizeof bits);
  if (type == element_type::bf16) return std::bit_cast<float>(std::uint32_t{bits} << 16);
  const int exponent = bits >> 10 & 31;
  const int fraction = bits & 1023;
  const float size = exponent == 0 ? std::ldexp(static_cast<float>(fraction), -24)
                                   : std::ldexp(static_cast<float>(1024 + fraction), exponent - 25);
  return (bits & 0x8000) != 0 ? -size : size;
}

TEST(Image, HalfPrecisionIsTheNearestToSinglePrecision) {
  image_options options{.width = 40,
                        .height = 30,
                        .layout = image_layout::chw,
                        .type = element_type::f32,
                        .mean = imagenet_mean,
                        .stddev = imagenet_stddev};
  const auto file = load(photos()[0]);
  const tensor single = decode_image(options)(file);
  for (const auto& [type, bits] : {std::pair{element_type::f16, 11}, {element_type::bf16, 8}}) {
    options.type = type;
    const tensor half = decode_image(options)(file);
    ASSERT_EQ(half.spec(), (tensor_spec{type, {3, 30, 40}}));
    for (std::size_t i = 0; i < half.spec().elements(); ++i) {
      const float wanted = single.data<float>()[i];
      const float most = std::ldexp(std::abs(wanted), -bits) + std::ldexp(1.0F, -25);
      ASSERT_NEAR(value_of(type, half.bytes() + 2 * i), wanted, most) << i;
    }
  }
}

TEST(Image, WhatIsNoImageIsUnsupported) {
  for (std::string_view text : {"\xff", "hello, world", "RIFF....WAVE", "....ftypheic"}) {
    try {
      decode_image()(named("b", bytes_of(text)));
      FAIL() << text;
    } catch (const error& failure) {
      EXPECT_EQ(failure.code(), errc::unsupported);
      EXPECT_THAT(failure.what(), HasSubstr("decode b: "));
    }
  }
}

TEST(Image, ErrorsNameAnEmptyFile) {
  EXPECT_THAT([] { decode_image()(named("b", buffer(0))); },
              ThrowsMessage<error>("decode b: the file is empty"));
}

TEST(Image, ErrorsNameAnUnreadSample) {
  const auto why = "decode b.jpg: the sample has no data: read it first (lade::io::read)";
  EXPECT_THAT([] { decode_image()(sample("b.jpg")); }, ThrowsMessage<error>(why));
  const decode_image small({.width = 8, .height = 8});
  const tensor slot(small.spec());
  EXPECT_THAT([&] { small(sample("b.jpg"), slot); }, ThrowsMessage<error>(why));
}

TEST(Image, ImagesOfMorePixelsThanAllowedAreRefusedByName) {
  for (const auto& good : good_samples()) {
    try {
      decode_image({.max_pixels = 1000})(good);
      FAIL() << good.key();
    } catch (const error& failure) {
      EXPECT_EQ(failure.code(), errc::limit_exceeded) << failure.what();
      EXPECT_THAT(failure.what(), AllOf(HasSubstr(good.key()), HasSubstr("max_pixels = 1000")));
    }
    EXPECT_NO_THROW(decode_image()(good));
  }
}

TEST(Image, OneDecoderServesManyThreads) {
  const decode_image decode({.width = 64, .height = 64, .fit = image_fit::random_crop});
  std::vector<tensor> expected;
  for (const auto& photo : photos()) expected.push_back(decode(load(photo), random(5)));
  std::vector<int> differences(4);
  std::vector<std::jthread> threads;
  for (auto& largest : differences)
    threads.emplace_back([&] {
      for (std::size_t i = 0; i < expected.size(); ++i)
        largest = std::max(largest, difference(decode(load(photos()[i]), random(5)), expected[i]));
    });
  threads.clear();
  EXPECT_EQ(differences, std::vector<int>(4, 0));
}

// What three runs without an epoch warn of.
template <class T>
static std::vector<std::string> warnings_of(const pipeline<T>& images) {
  runtime where({.threads = 2});
  std::vector<std::string> warnings;
  run_options options;
  options.on_warning = [&](const std::string& text) { warnings.push_back(text); };
  for (int i = 0; i < 3; ++i)
    for (auto items = where.run(images, options); items.wait_next();) {}
  return warnings;
}

TEST(Image, RandomCropsAreNoticedInASecondRunWithoutAnEpochAndOthersAreNot) {
  const auto photo = from(std::vector{load(photos()[0])});
  image_options options{.width = 8, .height = 8, .fit = image_fit::random_crop};
  const decode_image at_random(options);
  auto once = ElementsAre(HasSubstr("decode makes the same choices again"));
  EXPECT_THAT(warnings_of(photo | map(at_random, {.name = "decode"})), once);
  EXPECT_THAT(warnings_of(photo | batch_into(at_random, {.size = 1, .name = "decode"})), once);
  options.fit = image_fit::centre_crop;
  const decode_image at_the_centre(options);
  EXPECT_THAT(warnings_of(photo | map(at_the_centre)), IsEmpty());
  EXPECT_THAT(warnings_of(photo | batch_into(at_the_centre, {.size = 1})), IsEmpty());
}

TEST(Image, DecodesTheChosenField) {
  const auto photo = load(photos()[0]);
  auto of_fields = [&](const char* name) {
    return sample("a.tar/7").with_field(field(name, photo.data()));
  };
  const decode_image decode({.field = "jpg", .width = 32, .height = 24});
  const decode_image copied = decode;
  EXPECT_EQ(copied.field(), "jpg");
  EXPECT_EQ(difference(copied(of_fields("jpg")), decode_image({.width = 32, .height = 24})(photo)),
            0);
  EXPECT_EQ(decode.memory_needed(of_fields("jpg")),
            decode_image({.width = 32, .height = 24}).memory_needed(photo));
  EXPECT_EQ(decode.memory_to_write(of_fields("png")), 0u);
  EXPECT_THAT([&] { decode(of_fields("png")); },
              ThrowsMessage<error>(HasSubstr("find field jpg of a.tar/7: it has png")));
  EXPECT_THAT([&] { decode_image({.width = 8, .height = 8})(of_fields("jpg")); },
              ThrowsMessage<error>(HasSubstr("no data, but fields: say which")));
}

TEST(Image, FieldsOfASampleHaveTheSameCrop) {
  const auto photo = load(photos()[0]);
  std::vector<field> fields;
  fields.emplace_back("jpg", photo.data());
  fields.emplace_back("same", photo.data());
  const std::vector<sample> samples{sample("a").with_fields(fields),
                                    sample("b").with_fields(fields)};
  const image_options options{.width = 16, .height = 16, .fit = image_fit::random_crop};
  auto of = [&](std::string_view name) {
    auto each = options;
    each.field = name;
    return decode_image(each);
  };
  runtime runtime({.threads = 2});
  auto batches = from(samples) | batch_into(writers(of("jpg"), of("same")), {.size = 2});
  for (auto& batch : runtime.run(batches)) {
    EXPECT_EQ(difference(batch["jpg"], batch["same"]), 0);
    EXPECT_GT(difference(batch["jpg"][0], batch["jpg"][1]), 0);
    EXPECT_EQ(batch.samples()[0].find_field("jpg"), nullptr);
  }
}

}  // namespace lade::media::image_test
