#include <lade/cuda/stream.hpp>
#include <lade/cuda/write_images.hpp>
#include <lade/error.hpp>

#include "fake_driver.hpp"
#include "kernel_fixture.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace lade::cuda::write_images_test {

using testing::HasSubstr;
using testing::ThrowsMessage;

// An image of random pixels, in memory that begins or ends anywhere, with rows that are apart.
struct random_image {
  std::vector<unsigned char> bytes;
  std::unique_ptr<kernel_memory> memory;
  image_source source;

  int at(int x, int y, int c) const {
    const auto row = std::size_t(y) * std::size_t(source.pitch);
    return bytes[row + std::size_t(x) * std::size_t(source.channels) +
                 std::size_t(source.channels == 1 ? 0 : c)];
  }
};

class WriteImages : public kernel_test {
 protected:
  random_image any_image(int width, int height, int channels, bool joined = false) {
    random_image result;
    auto& source = result.source;
    source = {.width = width, .height = height, .channels = channels};
    source.pitch = width * channels + (joined ? 0 : below(3) * below(40));
    const auto last_row = std::size_t(width) * std::size_t(channels);
    result.bytes = any_bytes(std::size_t(source.pitch) * std::size_t(height - 1) + last_row);
    result.memory = memory_of(result.bytes, std::size_t(below(2) * below(16)), maybe());
    source.data = result.memory->data();
    source.flip = maybe();
    return result;
  }

  // All images as 8-bit values, in the order of the batch's channels.
  std::vector<unsigned char> bytes_of(const std::vector<image_source>& images, image_batch to) {
    to.type = element_type::u8;
    return written(to, images.size(), 0,
                   [&](const image_batch& batch) { write_images(images, batch, nullptr); });
  }
};

// What the value of a channel of a result should be, in exact arithmetic.
static double plain_value(const random_image& image, const image_batch& to, int x, int y, int c) {
  const auto& from = image.source;
  const auto columns =
      plain_axis_of(from.crop.left, from.crop.width, from.crop.isolated, from.width);
  const auto rows = plain_axis_of(from.crop.top, from.crop.height, from.crop.isolated, from.height);
  const int channel = to.bgr ? 2 - c : c;
  const int column = from.flip ? to.width - 1 - x : x;
  return plain_triangle(rows, y, to.height, [&](int v) {
    return plain_triangle(columns, column, to.width,
                          [&](int u) { return double(image.at(u, v, channel)); });
  });
}

template <class F>
static void for_each_value(const image_batch& to, F use) {
  for (int y = 0; y < to.height; ++y)
    for (int x = 0; x < to.width; ++x)
      for (int c = 0; c < to.channels; ++c) use(x, y, c);
}

static void expect_near_plain(const std::vector<random_image>& images, const image_batch& to,
                              const std::vector<unsigned char>& bytes) {
  for (std::size_t i = 0; i < images.size(); ++i)
    for_each_value(to, [&](int x, int y, int c) {
      ASSERT_NEAR(bytes[plain_index(to, i, x, y, c)], plain_value(images[i], to, x, y, c), 1)
          << "image " << i << " at " << x << ", " << y << ", channel " << c;
    });
}

// The elements of a batch are those that 8-bit values become.
static void expect_normalised(const image_batch& to, std::size_t count,
                              const std::vector<unsigned char>& elements,
                              const std::vector<unsigned char>& bytes) {
  for (std::size_t i = 0; i < count; ++i)
    for_each_value(to, [&](int x, int y, int c) {
      const auto index = plain_index(to, i, x, y, c);
      const double expected = plain_normalised(to, c, bytes[index]);
      ASSERT_NEAR(plain_element(elements, to.type, index), expected,
                  plain_rounding(to.type, expected))
          << name(to.type) << " of image " << i << " at " << x << ", " << y << ", channel " << c;
    });
}

static std::vector<image_source> sources_of(const std::vector<random_image>& images) {
  std::vector<image_source> sources;
  for (const auto& image : images) sources.push_back(image.source);
  return sources;
}

TEST_P(WriteImages, OfAnySizeAndCropAreThoseOfExactArithmetic) {
  for (int round = 0; round < 150; ++round) {
    const int channels = maybe() ? 3 : 1;
    const auto to = any_batch(any_size(70), any_size(40), channels);
    std::vector<random_image> images;
    for (int i = any_size(4); i > 0; --i) {
      images.push_back(any_image(any_size(std::min(150, 100 * to.width)),
                                 any_size(std::min(150, 100 * to.height)), maybe() ? channels : 1));
      auto& source = images.back().source;
      if (maybe()) source.crop = any_crop(source.width, source.height);
    }
    expect_near_plain(images, to, bytes_of(sources_of(images), to));
  }
}

TEST_P(WriteImages, OfTheSameSizeAreThePixelsThemselves) {
  for (int round = 0; round < 100; ++round) {
    auto to = any_batch(any_size(100), any_size(20), 3);
    if (maybe()) to.width = (to.width + 15) / 16 * 16;
    const bool joined = maybe();
    std::vector<random_image> images;
    for (int i = any_size(4); i > 0; --i) {
      const int right = joined ? 0 : below(30), below_it = joined ? 0 : below(30);
      images.push_back(any_image(to.width + right, to.height + below_it, 3, joined));
      auto& source = images.back().source;
      if (joined) source.flip = false;
      source.crop = {.left = double(right ? below(right) : 0),
                     .top = double(below_it ? below(below_it) : 0),
                     .width = double(to.width),
                     .height = double(to.height)};
    }
    const auto bytes = bytes_of(sources_of(images), to);
    for (std::size_t i = 0; i < images.size(); ++i)
      for_each_value(to, [&](int x, int y, int c) {
        const auto& crop = images[i].source.crop;
        const int column = images[i].source.flip ? to.width - 1 - x : x;
        ASSERT_EQ(bytes[plain_index(to, i, x, y, c)],
                  images[i].at(int(crop.left) + column, int(crop.top) + y, to.bgr ? 2 - c : c))
            << "image " << i << " at " << x << ", " << y << ", channel " << c;
      });
  }
}

TEST_P(WriteImages, OfAllTypesAreTheNormalisedBytes) {
  for (int round = 0; round < 60; ++round) {
    const auto to = any_batch(any_size(70), any_size(30), 3);
    std::vector<random_image> images;
    for (int i = any_size(4); i > 0; --i) {
      const bool same_size = maybe();
      images.push_back(any_image(same_size ? to.width : any_size(90),
                                 same_size ? to.height : any_size(90), maybe() ? 3 : 1, maybe()));
    }
    const auto sources = sources_of(images);
    const auto elements =
        written(to, images.size(), std::size_t(below(2) * below(16)),
                [&](const image_batch& batch) { write_images(sources, batch, nullptr); });
    expect_normalised(to, images.size(), elements, bytes_of(sources, to));
  }
}

TEST_P(WriteImages, IsTheSameWhereverTheResultBegins) {
  for (const auto type :
       {element_type::u8, element_type::f16, element_type::bf16, element_type::f32}) {
    auto to = any_batch(32, 5, 3);
    to.type = type;
    const auto image = any_image(32, 5, 3);
    const auto write = [&](const image_batch& batch) {
      write_images({&image.source, 1}, batch, nullptr);
    };
    const auto aligned = written(to, 1, 0, write);
    for (std::size_t offset = 1; offset < 16; ++offset)
      ASSERT_EQ(written(to, 1, offset, write), aligned) << offset << " elements of " << name(type);
  }
}

TEST_P(WriteImages, WritesEachOfManyImagesToItsSlot) {
  const auto to = any_batch(6, 4, 3);
  std::vector<random_image> images;
  for (int i = 0; i < 400; ++i) {
    const bool same_size = maybe();
    images.push_back(any_image(same_size ? 6 : 9, same_size ? 4 : 7, maybe() ? 3 : 1));
  }
  expect_near_plain(images, to, bytes_of(sources_of(images), to));
}

TEST_P(WriteImages, ShrinkTo100thOfTheSize) {
  const auto to = any_batch(3, 2, 3);
  std::vector<random_image> images;
  images.push_back(any_image(300, 200, 3));
  expect_near_plain(images, to, bytes_of(sources_of(images), to));
  images.push_back(any_image(301, 200, 3));
  EXPECT_THROW(bytes_of(sources_of(images), to), error);
}

TEST_P(WriteImages, GrowToManyTimesTheSize) {
  const auto to = any_batch(140, 90, 3);
  std::vector<random_image> images;
  images.push_back(any_image(1, 1, 3));
  images.push_back(any_image(2, 3, 3));
  images.push_back(any_image(5, 1, 1));
  expect_near_plain(images, to, bytes_of(sources_of(images), to));
}

// Grids whose results are not looked at.
class WriteImagesArguments : public testing::Test {
 protected:
  std::string refused(errc code = errc::invalid_argument) const {
    try {
      write_images({&image, 1}, to, nullptr);
    } catch (const error& failure) {
      EXPECT_EQ(failure.code(), code);
      return failure.what();
    }
    return "";
  }

  emulated_grids grids{1};
  std::vector<unsigned char> from = std::vector<unsigned char>(8 * 6 * 3);
  std::vector<float> out = std::vector<float>(5 * 4 * 3);
  image_source image{.data = from.data(), .width = 8, .height = 6};
  image_batch to{.data = out.data(), .width = 5, .height = 4};
};

TEST_F(WriteImagesArguments, ThatAreRightAreTaken) {
  EXPECT_EQ(refused(), "");
  EXPECT_EQ(grids.launches, 1);
}

TEST_F(WriteImagesArguments, ThatCannotBeAreNamed) {
  const auto expect = [&](auto spoil, const char* text) {
    const auto kept_image = image;
    const auto kept_to = to;
    spoil();
    EXPECT_THAT(refused(), HasSubstr(text));
    image = kept_image;
    to = kept_to;
  };
  expect([&] { image.data = nullptr; }, "image 0: data is null");
  expect([&] { image.width = 0; }, "image 0: width x height");
  expect([&] { image.height = -1; }, "image 0: width x height");
  expect([&] { image.width = 32769; }, "image 0: width x height");
  expect([&] { image.channels = 2; }, "image 0: channels is 2");
  expect([&] { image.pitch = 23; }, "image 0: pitch is 23 bytes, a row has 24");
  expect([&] { image.pitch = -24; }, "image 0: pitch");
  expect([&] { image.pitch = std::numeric_limits<std::int64_t>::max(); }, "image 0: pitch");
  expect([&] { image.crop = {.width = 9, .height = 1}; }, "image 0: crop");
  expect([&] { image.crop = {.left = -1, .width = 2, .height = 1}; }, "image 0: crop");
  expect([&] { image.crop = {.width = 2, .height = 0}; }, "image 0: crop");
  expect([&] { image.crop = {.left = NAN, .width = 2, .height = 1}; }, "image 0: crop");
  expect([&] { image.crop = {.width = NAN, .height = 1}; }, "image 0: crop");
  expect([&] { to.data = nullptr; }, "to.data is null");
  expect([&] { to.data = reinterpret_cast<char*>(out.data()) + 2; }, "to.data is not a multiple");
  expect([&] { to.width = 0; }, "width x height");
  expect([&] { to.channels = 4; }, "to.channels");
  expect([&] { to.channels = 1; }, "image 0: channels is 3");
  expect([&] { to.mean[1] = INFINITY; }, "mean");
  expect([&] { to.stddev[2] = 0; }, "stddev");
  EXPECT_EQ(grids.launches, 0);
}

TEST_F(WriteImagesArguments, OfUnhandledKindsAreNamed) {
  to.type = element_type::f64;
  EXPECT_THAT(refused(errc::unsupported), HasSubstr("to.type of f64"));
  to.type = element_type::f32;
  image.height = 2;
  to.height = 1;
  image.width = 8;
  image.crop = {.width = 8, .height = 2};
  EXPECT_EQ(refused(), "");
}

TEST_F(WriteImagesArguments, MustHaveImages) { EXPECT_THROW(write_images({}, to, nullptr), error); }

TEST_F(WriteImagesArguments, AreAllLookedAtBeforeAKernelIsLaunched) {
  std::vector<image_source> images(500, image);
  images.back().data = nullptr;
  EXPECT_THROW(write_images(images, to, nullptr), error);
  EXPECT_EQ(grids.launches, 0);
}

TEST_F(WriteImagesArguments, JoinRowsToOneWithoutCropOrFlip) {
  to = {.data = out.data(), .type = element_type::u8, .width = 8, .height = 6};
  EXPECT_EQ(refused(), "");
  EXPECT_TRUE(grids.grouped);  // 8 pixels are no group of 16, but 48 are three
  image.flip = true;
  EXPECT_EQ(refused(), "");
  EXPECT_FALSE(grids.grouped);
}

// The last of so many images that they have more than 2^32 elements.
TEST_F(WriteImagesArguments, MayBeMoreThanTwoToThe32Elements) {
  const std::vector<unsigned char> pixels(200 * 200 * 3, 99);
  for (const int size : {200, 150}) {  // resized, or not
    const std::size_t count = (std::size_t{1} << 32) / (150 * 150 * 3) + 2;
    const auto bytes = count * 150 * 150 * 3;
    const sparse_memory memory(bytes);
    to = {.data = memory.data, .type = element_type::u8, .width = 150, .height = 150};
    const std::vector<image_source> images(count,
                                           {.data = pixels.data(), .width = size, .height = size});
    const auto most = size == 150 ? convert_batch::most_sources : resample_batch::most_sources;
    const auto last = grids.launches + static_cast<int>(divided_up(std::int64_t(count), most));
    grids.only = [&](const grid_shape& shape, const grid_block& block) {
      return grids.launches == last && block.z + 1 == shape.z;
    };
    write_images(images, to, nullptr);
    EXPECT_EQ(grids.launches, last);
    EXPECT_EQ(memory.data[bytes - 1], 99);
    EXPECT_EQ(memory.data[bytes - 150 * 150 * 3], 99);
    EXPECT_EQ(memory.data[bytes - 150 * 150 * 3 - 1], 0);
  }
}

TEST_F(WriteImagesArguments, AreTakenFromATensor) {
  const auto no_owner = std::make_shared<int>();
  const auto bytes = std::as_writable_bytes(std::span(from));
  const tensor images({element_type::u8, {2, 4, 6, 3}},
                      buffer(no_owner, bytes, {lade::device::kind::cuda, 0}));
  const auto parts = images_in(images);
  ASSERT_EQ(parts.size(), 2U);
  EXPECT_EQ(parts[0].data, from.data());
  EXPECT_EQ(parts[1].data, from.data() + 4 * 6 * 3);
  EXPECT_EQ(parts[1].width, 6);
  EXPECT_EQ(parts[1].height, 4);
  EXPECT_EQ(parts[1].channels, 3);
  EXPECT_EQ(parts[1].gpu, 0);
  EXPECT_THROW(images_in(images[0]), error);
  EXPECT_THROW(images_in(tensor(element_type::f32, {2, 4, 6, 3})), error);
  EXPECT_THROW(images_in(tensor(element_type::u8, {2, 4, 6, 3})), error);  // of the CPU
}

TEST_F(WriteImagesArguments, OnAStreamHaveItsDeviceAsTheCurrentOne) {
  const fake_driver driver({.devices = 2});
  int current = 0;
  grids.before_launch = [&] { current = device::current().index(); };
  const stream on(device(1));
  write_images({&image, 1}, to, on);
  EXPECT_EQ(current, 1);
  EXPECT_EQ(grids.last_stream, on.handle());
  EXPECT_EQ(device::current().index(), 0);
  to.data = nullptr;
  EXPECT_THROW(write_images({&image, 1}, to, on), error);
}

TEST_F(WriteImagesArguments, FitIntoTheTensorThatTheyAreWrittenTo) {
  const fake_driver driver;
  std::vector<std::byte> memory(4 * 6 * 3 * 3);
  const tensor batch({element_type::u8, {2, 4, 6, 3}},
                     buffer(std::make_shared<int>(), memory, {lade::device::kind::cuda, 0}));
  const std::vector<image_source> images(3, image);
  const auto room = batch_in(batch, pixel_layout::hwc);
  write_images(std::span(images).first(2), room, nullptr);
  const auto launches = grids.launches;
  EXPECT_THAT([&] { write_images(images, room, nullptr); },
              ThrowsMessage<error>(HasSubstr("there are 3 images, but to has 2 slots")));
  const tensor none({element_type::u8, {0, 4, 6, 3}}, batch.memory());
  EXPECT_THROW(write_images({&image, 1}, batch_in(none, pixel_layout::hwc), nullptr), error);
  EXPECT_EQ(grids.launches, launches);
}

TEST_F(WriteImagesArguments, AreMemoryOfTheDeviceOfTheStream) {
  const fake_driver driver({.devices = 2});
  const stream on(device(1));
  to.gpu = image.gpu = 1;
  write_images({&image, 1}, to, on);
  to.gpu = 0;
  const auto launches = grids.launches;
  EXPECT_THAT([&] { write_images({&image, 1}, to, on); },
              ThrowsMessage<error>(HasSubstr("to.data is memory of GPU 0, and the stream is one of "
                                             "GPU 1")));
  to.gpu = 1;
  image.gpu = 0;
  EXPECT_THAT([&] { write_images({&image, 1}, to, on); },
              ThrowsMessage<error>(HasSubstr("image 0: data is memory of GPU 0")));
  EXPECT_EQ(grids.launches, launches);
}

LADE_KERNEL_SUITE(WriteImages);

}  // namespace lade::cuda::write_images_test
