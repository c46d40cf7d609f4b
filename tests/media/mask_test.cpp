#include "../support/seed.hpp"
#include "images.hpp"
#include "jpeg_writer.hpp"
#include "png_writer.hpp"

#include <lade/batch.hpp>
#include <lade/error.hpp>
#include <lade/from.hpp>
#include <lade/map.hpp>
#include <lade/media/crop.hpp>
#include <lade/media/image.hpp>
#include <lade/media/mask.hpp>
#include <lade/run.hpp>
#include <lade/runtime.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace lade::media::mask_test {

using testing::HasSubstr;
using testing::ThrowsMessage;

// The values of a mask as stored, row by row.
struct plain_mask {
  int width = 0;
  int height = 0;
  std::vector<std::uint32_t> values;

  std::uint32_t at(int x, int y) const {
    return values[static_cast<std::size_t>(y) * static_cast<std::size_t>(width) +
                  static_cast<std::size_t>(x)];
  }
};

static plain_mask random_mask(int width, int height, int bits, random& draw) {
  plain_mask mask{width, height, {}};
  for (int i = 0; i < width * height; ++i)
    mask.values.push_back(static_cast<std::uint32_t>(draw.below(std::uint64_t{1} << bits)));
  return mask;
}

// A sample with a mask, and an image of any size, in the fields "mask" and "image".
static sample sample_of(buffer mask, int width, int height) {
  const plain_mask grey{width, height, std::vector<std::uint32_t>(std::size_t(width * height), 9)};
  return sample("a.tar/7")
      .with_field({"mask", std::move(mask)})
      .with_field({"image", write_png(grey.values, width, height, {})});
}

static buffer file_of(const plain_mask& mask, const png_kind& kind) {
  return write_png(mask.values, mask.width, mask.height, kind);
}

static std::int64_t element(const tensor& of, int y, int x) {
  const auto row = of[y];
  switch (of.type()) {
    case element_type::u8: return row.data<std::uint8_t>()[x];
    case element_type::u16: return row.data<std::uint16_t>()[x];
    case element_type::i32: return row.data<std::int32_t>()[x];
    default: return row.data<std::int64_t>()[x];
  }
}

// The same in exact arithmetic, of a box of whole pixels: the value at (x, y) of the upright mask.
template <class At>
static void expect_nearest(const tensor& out, const chosen_crop& crop, At at) {
  ASSERT_EQ(out.shape(), (dimensions{crop.result.height, crop.result.width}));
  const auto nearest = [](double begin, double length, std::int64_t i, std::int64_t count) {
    return static_cast<int>(static_cast<std::int64_t>(begin) +
                            (2 * i + 1) * static_cast<std::int64_t>(length) / (2 * count));
  };
  for (int i = 0; i < crop.result.height; ++i)
    for (int j = 0; j < crop.result.width; ++j) {
      const int column = crop.flip ? crop.result.width - 1 - j : j;
      const int y = nearest(crop.box.top, crop.box.height, i, crop.result.height);
      const int x = nearest(crop.box.left, crop.box.width, column, crop.result.width);
      ASSERT_EQ(element(out, i, j), at(x, y)) << i << ", " << j;
    }
}

static element_type random_mask_type(int bits, random& draw) {
  constexpr std::array types{element_type::u8, element_type::u16, element_type::i32,
                             element_type::i64};
  const std::size_t first = bits > 8 ? 1 : 0;
  return types[first + draw.below(types.size() - first)];
}

// Grey of 1 to 16 bits and palettes of 1 to 8.
static png_kind random_kind(random& draw) {
  png_kind kind{.bits = 1 << draw.below(5), .colour = draw.below(2) == 0 ? 0 : 3};
  if (kind.bits == 16) kind.colour = 0;
  kind.interlaced = draw.below(2) == 0;
  kind.transparency = draw.below(3) == 0;
  if (kind.colour == 3 && draw.below(4) == 0) kind.palette = 1;
  return kind;
}

static chosen_crop random_crop_of(int width, int height, random& draw) {
  const auto up_to = [&](int most) {
    return 1 + static_cast<int>(draw.below(std::uint64_t(most)));
  };
  const image_options how{.width = up_to(60),
                          .height = up_to(60),
                          .fit = draw.below(3) == 0 ? image_fit::cover : image_fit::random_crop,
                          .min_area = 0.01,
                          .min_aspect = 0.2,
                          .max_aspect = 5};
  return choose_crop(width, height, how, draw);
}

TEST(Mask, HasTheValuesOfItsFileOfEveryKind) {
  const auto seed = test::new_seed();
  SCOPED_TRACE("LADE_SEED=" + std::to_string(seed));
  random draw(seed);
  for (int round = 0; round < 300; ++round) {
    const auto kind = random_kind(draw);
    const auto mask = random_mask(1 + static_cast<int>(draw.below(40)),
                                  1 + static_cast<int>(draw.below(40)), kind.bits, draw);
    const auto in = sample_of(file_of(mask, kind), mask.width, mask.height);
    const decode_mask decode({.field = "image"},
                             {.field = "mask", .type = random_mask_type(kind.bits, draw)});
    SCOPED_TRACE("round " + std::to_string(round) + ", bits " + std::to_string(kind.bits) +
                 ", colour " + std::to_string(kind.colour));
    expect_nearest(decode(in), choose_crop(mask.width, mask.height, {}),
                   [&](int x, int y) { return mask.at(x, y); });
    if (testing::Test::HasFatalFailure()) return;
  }
}

// By the definition of Exif: where the pixel at (x, y) of an upright image is stored.
static std::uint32_t upright_value(const plain_mask& stored, int orientation, int x, int y) {
  const int right = stored.width - 1, bottom = stored.height - 1;
  switch (orientation) {
    case 2: return stored.at(right - x, y);
    case 3: return stored.at(right - x, bottom - y);
    case 4: return stored.at(x, bottom - y);
    case 5: return stored.at(y, x);
    case 6: return stored.at(y, bottom - x);
    case 7: return stored.at(right - y, bottom - x);
    case 8: return stored.at(right - y, x);
    default: return stored.at(x, y);
  }
}

TEST(Mask, IsCroppedFlippedAndTurnedToTheNearestValuesOfAPlainLoop) {
  const auto seed = test::new_seed();
  SCOPED_TRACE("LADE_SEED=" + std::to_string(seed));
  random draw(seed);
  for (int round = 0; round < 400; ++round) {
    auto kind = random_kind(draw);
    kind.orientation = static_cast<int>(draw.below(9));
    const auto mask = random_mask(1 + static_cast<int>(draw.below(50)),
                                  1 + static_cast<int>(draw.below(50)), kind.bits, draw);
    const bool orient = draw.below(4) > 0;
    const bool turned = orient && kind.orientation > 4;
    const auto width = turned ? mask.height : mask.width,
               height = turned ? mask.width : mask.height;
    const auto in = sample_of(file_of(mask, kind), width, height);
    const auto crop = random_crop_of(width, height, draw);
    const decode_mask decode({.field = "image", .orient = orient},
                             {.field = "mask", .type = random_mask_type(kind.bits, draw)});
    SCOPED_TRACE("round " + std::to_string(round));
    expect_nearest(decode(in, crop), crop, [&](int x, int y) {
      return upright_value(mask, orient ? kind.orientation : 1, x, y);
    });
    if (testing::Test::HasFatalFailure()) return;
  }
}

TEST(Mask, ATensorOfAnyTypeAndStridesIsCroppedLikeAFile) {
  const auto seed = test::new_seed();
  SCOPED_TRACE("LADE_SEED=" + std::to_string(seed));
  random draw(seed);
  for (int round = 0; round < 300; ++round) {
    const auto mask = random_mask(1 + static_cast<int>(draw.below(50)),
                                  1 + static_cast<int>(draw.below(50)), 8, draw);
    const auto type = random_mask_type(8, draw);
    const decode_mask decode({}, {.field = "mask", .type = type});
    const auto crop = random_crop_of(mask.width, mask.height, draw);
    const auto expected = decode(sample_of(file_of(mask, {}), 1, 1), crop);
    // The columns of a wider tensor from the last to the first.
    const std::int64_t height = mask.height, width = mask.width;
    const tensor wide(type, {height, 2 * width});
    const auto step = element_bytes(type);
    const tensor strided({type, {height, width}}, {2 * width, -2}, wide.memory(),
                         wide.bytes() + static_cast<std::size_t>(2 * width - 1) * step);
    const auto whole =
        decode(sample_of(file_of(mask, {}), 1, 1), choose_crop(mask.width, mask.height, {}));
    for (int y = 0; y < mask.height; ++y)
      for (int x = 0; x < mask.width; ++x)
        std::memcpy(strided[y][x].bytes(), whole[y][x].bytes(), step);
    const auto cropped = crop_mask(strided, crop);
    ASSERT_EQ(cropped.spec(), expected.spec());
    ASSERT_EQ(std::memcmp(cropped.bytes(), expected.bytes(), expected.spec().bytes()), 0)
        << "round " << round;
  }
}

TEST(Mask, ThePixelOfAPartOfAPixelIsTheOneThatItsCentreLiesIn) {
  const auto seed = test::new_seed();
  SCOPED_TRACE("LADE_SEED=" + std::to_string(seed));
  random draw(seed);
  for (int round = 0; round < 100; ++round) {
    const int width = 20 + static_cast<int>(draw.below(500));
    const tensor numbers(element_type::i32, {1, width});
    for (int x = 0; x < width; ++x) numbers.data<std::int32_t>()[x] = x;
    const auto crop = choose_crop(
        width, 1, {.width = 16, .height = 16, .fit = image_fit::centre_crop, .shorter_side = 19});
    const auto out = crop_mask(numbers, crop);
    for (int j = 0; j < 16; ++j) {
      const double centre = crop.box.left + (j + 0.5) * crop.box.width / 16;
      EXPECT_LE(std::abs(static_cast<double>(element(out, 3, j)) + 0.5 - centre), 0.5 + 1e-9);
    }
  }
}

// A ramp from left to right, in an image and its mask.
static sample ramp(int width, int height) {
  plain_mask values{width, height, {}};
  for (int i = 0; i < width * height; ++i) values.values.push_back(std::uint32_t(2 * (i % width)));
  return sample("ramp")
      .with_field({"image", file_of(values, {})})
      .with_field({"mask", file_of(values, {.colour = 3})});
}

static void expect_aligned(const tensor& image, const tensor& mask) {
  double sum = 0;
  for (int y = 0; y < 24; ++y)
    for (int x = 0; x < 24; ++x) {
      const int difference =
          *image[y][x].data<std::uint8_t>() - static_cast<int>(element(mask, y, x));
      ASSERT_LE(std::abs(difference), 6) << y << ", " << x;
      sum += difference;
    }
  EXPECT_LE(std::abs(sum / (24 * 24)), 1.1);  // a pixel differs by 2
}

TEST(Mask, IsAlignedWithItsImageInABatch) {
  const image_options how{.field = "image",
                          .width = 24,
                          .height = 24,
                          .fit = image_fit::random_crop,
                          .colour = image_colour::grey};
  const std::vector<sample> samples(40, ramp(100, 80));
  runtime runtime({.threads = 2});
  const auto batches =
      from(samples) |
      batch_into(writers(decode_image(how), decode_mask(how, {.field = "mask"})), {.size = 8});
  int flipped = 0;
  for (auto& batch : runtime.run(batches))
    for (int i = 0; i < 8; ++i) {
      const auto mask = batch["mask"][i];
      expect_aligned(batch["image"][i], mask);
      flipped += element(mask, 0, 0) > element(mask, 0, 23) ? 1 : 0;
    }
  EXPECT_GT(flipped, 5);
  EXPECT_LT(flipped, 35);
}

TEST(Mask, TakesTheCropThatItsSampleHas) {
  image_options how{.field = "image", .width = 24, .height = 24, .fit = image_fit::random_crop};
  const decode_image image(how);
  const auto add_crop = [image](const sample& in, random draw) {
    return sample(in).with_field({"crop", to_tensor(image.crop_of(in, draw))});
  };
  how.crop_field = "crop";
  const decode_mask masks(how, {.field = "mask"});
  EXPECT_FALSE(masks.is_random());
  runtime runtime({.threads = 2});
  const std::vector<sample> samples(6, ramp(100, 80));
  const auto batches = from(samples) | map(add_crop) |
                       batch_into(writers(decode_image(how), masks), {.size = 3, .fields = "crop"});
  for (auto& batch : runtime.run(batches))
    for (int i = 0; i < 3; ++i) {
      const auto crop = to_crop(batch["crop"][i]);
      EXPECT_EQ(crop.image, (image_size{100, 80}));
      EXPECT_EQ(difference(batch["mask"][i], masks(samples[0], crop)), 0);
      EXPECT_EQ(difference(batch["image"][i], image(samples[0], crop)), 0);
    }
}

static void expect_refused(const sample& in, const image_options& image, const mask_options& mask,
                           errc code, const std::string& text) {
  try {
    decode_mask(image, mask)(in);
    ADD_FAILURE() << "decoded, without: " << text;
  } catch (const error& failure) {
    EXPECT_EQ(failure.code(), code) << failure.what();
    EXPECT_THAT(failure.what(), HasSubstr(text));
  }
}

TEST(Mask, AMaskOfAnotherSizeIsRefusedByName) {
  random draw(1);
  const auto mask = random_mask(20, 10, 8, draw);
  expect_refused(sample_of(file_of(mask, {}), 10, 20), {.field = "image"}, {.field = "mask"},
                 errc::invalid_data,
                 "decode the mask mask of a.tar/7: the mask is 20 x 10, its crop that of an image "
                 "of 10 x 20");
  expect_refused(sample_of(file_of(mask, {.orientation = 6}), 20, 10), {.field = "image"},
                 {.field = "mask"}, errc::invalid_data, "the mask is 10 x 20");
  EXPECT_THAT([&] { crop_mask(tensor(element_type::u8, {10, 20}), choose_crop(10, 20, {})); },
              ThrowsMessage<error>(HasSubstr("crop a mask: the mask is 20 x 10")));
}

TEST(Mask, AFileThatKeepsNoValuesIsRefusedByName) {
  random draw(1);
  const auto refused = [&](buffer file, const char* why) {
    expect_refused(sample_of(std::move(file), 8, 8), {.field = "image"}, {.field = "mask"},
                   errc::unsupported, std::string("decode the mask mask of a.tar/7: ") + why);
  };
  refused(write_jpeg(tensor(element_type::u8, {8, 8, 3})), "a mask is a PNG file");
  for (int colour : {2, 4, 6})
    for (int bits : {8, 16}) {
      const auto samples = random_mask(8, 8 * channels_of_png(colour), bits, draw).values;
      refused(write_png(samples, 8, 8, {.bits = bits, .colour = colour}),
              "a mask has one value for each pixel, grey or an index; this PNG has colours");
    }
  refused(file_of(random_mask(8, 8, 16, draw), {.bits = 16}),
          "the values have 16 bits, more than the type holds");
}

TEST(Mask, ADamagedFileIsRefusedByName) {
  random draw(1);
  const auto whole = file_of(random_mask(8, 8, 8, draw), {});
  const auto refused = [&](buffer file, errc code, const char* why) {
    expect_refused(sample_of(std::move(file), 8, 8), {.field = "image", .max_pixels = 100},
                   {.field = "mask"}, code, std::string("decode the mask mask of a.tar/7: ") + why);
  };
  refused(buffer(), errc::invalid_data, "the file is empty");
  refused(whole.slice(0, 20), errc::invalid_data, "the PNG's data are damaged");
  refused(whole.slice(0, whole.size() - 30), errc::invalid_data, "the PNG's data are damaged");
  refused(file_of(random_mask(10, 11, 8, draw), {}), errc::limit_exceeded,
          "10 x 11 pixels are more than max_pixels = 100");
}

TEST(Mask, ErrorsNameTheMissingField) {
  const decode_mask decode({.field = "image"}, {.field = "mask"});
  EXPECT_THAT([&] { decode(ramp(10, 10).without_field("mask")); },
              ThrowsMessage<error>(HasSubstr("find field mask of ramp: it has image")));
  EXPECT_THAT([&] { decode(ramp(10, 10).without_field("image")); },
              ThrowsMessage<error>(HasSubstr("find field image of ramp: it has mask")));
  EXPECT_THAT([&] { decode(ramp(10, 10).with_field({"mask", "text"})); },
              ThrowsMessage<error>(HasSubstr("decode the mask mask of ramp: its field mask holds "
                                             "text instead of bytes")));
  EXPECT_THAT(
      [&] {
        decode_mask({.field = "image", .crop_field = "crop"},
                    {.field = "mask"})(ramp(10, 10).with_field({"crop", 3}));
      },
      ThrowsMessage<error>(HasSubstr("decode the mask mask of ramp: its field crop holds integer "
                                     "instead of a tensor")));
  EXPECT_THAT([&] { decode_mask({.field = "image"})(ramp(10, 10)); },
              ThrowsMessage<error>(HasSubstr("decode the mask ramp: the sample has no data, but")));
  EXPECT_THAT([&] { decode(ramp(10, 10), tensor(element_type::u8, {10, 11})); },
              ThrowsMessage<error>(HasSubstr("the slot is u8[10, 11] instead of contiguous u8")));
}

TEST(Mask, OptionsThatCannotWorkAreNamed) {
  const auto refused = [](const image_options& image, const mask_options& mask, const char* why) {
    EXPECT_THAT([&] { decode_mask(image, mask); }, ThrowsMessage<error>(HasSubstr(why)));
  };
  refused({}, {.field = "mask", .type = element_type::f32}, "make decode_mask: type must be");
  refused({.field = "png"}, {.field = "png"}, "field must be another than the image's");
  refused({}, {}, "field must be another than the image's");
  refused({.fit = image_fit::cover}, {.field = "mask"}, "fit needs a width and a height");
}

TEST(Mask, ReportsItsSpecAndMemory) {
  const decode_mask fixed({.width = 30, .height = 20},
                          {.field = "mask", .type = element_type::i64});
  EXPECT_EQ(fixed.spec(), (tensor_spec{element_type::i64, {20, 30}}));
  EXPECT_EQ(fixed.field(), "mask");
  random draw(1);
  const auto mask = random_mask(40, 50, 16, draw);
  const auto in = sample_of(file_of(mask, {.bits = 16}), 40, 50);
  const auto bytes = in.field("mask").bytes().size();
  EXPECT_EQ(fixed.memory_to_write(in), 2 * 40 * 50 + bytes);
  EXPECT_EQ(fixed.memory_needed(in), 8 * 20 * 30 + 2 * 40 * 50 + bytes);
  const decode_mask own({}, {.field = "mask", .type = element_type::u16});
  EXPECT_EQ(own.memory_needed(in), 2 * 40 * 50 + 2 * 40 * 50 + bytes);
  EXPECT_EQ(own.memory_to_write(sample("b").with_field({"mask", "text"})), 0u);
}

}  // namespace lade::media::mask_test
