#include <lade/cuda/stream.hpp>
#include <lade/cuda/write_pictures.hpp>
#include <lade/error.hpp>

#include "fake_driver.hpp"
#include "random_pictures.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

namespace lade::cuda::write_pictures_test {

using testing::HasSubstr;
using testing::ThrowsMessage;

class WritePictures : public picture_test {
 protected:
  std::vector<unsigned char> bytes_of(const std::vector<random_picture>& pictures, image_batch to) {
    to.type = element_type::u8;
    return elements_of(pictures, to);
  }

  std::vector<unsigned char> elements_of(const std::vector<random_picture>& pictures,
                                         const image_batch& to) {
    std::vector<yuv_picture> sources;
    for (const auto& picture : pictures) sources.push_back(picture.source);
    return written(to, sources.size(), std::size_t(below(2) * below(16)),
                   [&](const image_batch& batch) { write_pictures(sources, batch, nullptr); });
  }

  int size_for(int target) { return any_size(std::min(90, 100 * target)); }
};

// The axis of a component: one sample for each `step` of luma, the first of them `offset` samples
// of luma before the middle of those.
static plain_axis chroma_axis(const plain_axis& luma, int shift, bool first, int size) {
  const double step = 1 << shift;
  const double offset = first ? (step - 1) / 2 : 0;
  const int low = std::min(int(luma.low / step), size - 1);
  return {(luma.begin + offset) / step, luma.length / step, low,
          std::clamp(int(std::ceil(luma.high / step)), low + 1, size)};
}

// Y, Cb or Cr of a pixel of the result, in 0..1 and -0.5..0.5.
static double plain_component(const random_picture& picture, const image_batch& to, int x, int y,
                              int component) {
  const auto& from = picture.source;
  auto columns = plain_axis_of(from.crop.left, from.crop.width, from.crop.isolated, from.width);
  auto rows = plain_axis_of(from.crop.top, from.crop.height, from.crop.isolated, from.height);
  if (component > 0) {
    columns = chroma_axis(columns, from.chroma_shift_x, from.siting != yuv_siting::centre,
                          picture.plane_width(1));
    rows = chroma_axis(rows, from.chroma_shift_y, from.siting == yuv_siting::top_left,
                       picture.plane_height(1));
  }
  const int column = from.flip ? to.width - 1 - x : x;
  const double code = plain_triangle(rows, y, to.height, [&](int v) {
    return plain_triangle(columns, column, to.width,
                          [&](int u) { return double(picture.code(u, v, component)); });
  });
  const double unit = 1 << (from.bits - 8);
  if (from.full_range) return (code - (component > 0 ? 128 * unit : 0)) / ((1 << from.bits) - 1);
  return component > 0 ? (code - 128 * unit) / (224 * unit) : (code - 16 * unit) / (219 * unit);
}

static std::array<double, 3> plain_rgb(const random_picture& picture, const image_batch& to, int x,
                                       int y) {
  static constexpr double weights[][2]{{0.299, 0.114}, {0.2126, 0.0722}, {0.2627, 0.0593}};
  const auto [kr, kb] = weights[std::size_t(picture.source.matrix)];
  const double luma = plain_component(picture, to, x, y, 0);
  const double red = luma + 2 * (1 - kr) * plain_component(picture, to, x, y, 2);
  const double blue = luma + 2 * (1 - kb) * plain_component(picture, to, x, y, 1);
  const double green = (luma - kr * red - kb * blue) / (1 - kr - kb);
  return {plain_byte(255 * red), plain_byte(255 * green), plain_byte(255 * blue)};
}

static void expect_near_plain(const std::vector<random_picture>& pictures, const image_batch& to,
                              const std::vector<unsigned char>& bytes) {
  for (std::size_t i = 0; i < pictures.size(); ++i)
    for (int y = 0; y < to.height; ++y)
      for (int x = 0; x < to.width; ++x) {
        const auto rgb = plain_rgb(pictures[i], to, x, y);
        for (int c = 0; c < 3; ++c)
          ASSERT_NEAR(bytes[plain_index(to, i, x, y, c)], rgb[std::size_t(to.bgr ? 2 - c : c)], 2)
              << "picture " << i << " at " << x << ", " << y << ", channel " << c;
      }
}

TEST_P(WritePictures, OfAnyKindAndCropAreThoseOfExactArithmetic) {
  for (int round = 0; round < 150; ++round) {
    const auto to = any_batch(any_size(70), any_size(40), 3);
    std::vector<random_picture> pictures;
    for (int i = any_size(4); i > 0; --i) {
      pictures.push_back(any_picture(any_kind(), size_for(to.width), size_for(to.height)));
      auto& source = pictures.back().source;
      if (maybe()) source.crop = any_crop(source.width, source.height);
    }
    expect_near_plain(pictures, to, bytes_of(pictures, to));
  }
}

TEST_P(WritePictures, OfAllTypesAreTheNormalisedBytes) {
  for (int round = 0; round < 60; ++round) {
    const auto to = any_batch(any_size(70), any_size(30), 3);
    std::vector<random_picture> pictures;
    for (int i = any_size(4); i > 0; --i)
      pictures.push_back(any_picture(any_kind(), size_for(to.width), size_for(to.height)));
    const auto elements = elements_of(pictures, to);
    const auto bytes = bytes_of(pictures, to);
    for (std::size_t i = 0; i < pictures.size(); ++i)
      for (int y = 0; y < to.height; ++y)
        for (int x = 0; x < to.width; ++x)
          for (int c = 0; c < 3; ++c) {
            const auto index = plain_index(to, i, x, y, c);
            const double expected = plain_normalised(to, c, bytes[index]);
            ASSERT_NEAR(plain_element(elements, to.type, index), expected,
                        plain_rounding(to.type, expected));
          }
  }
}

TEST_P(WritePictures, WritesEachOfManyToItsSlot) {
  const auto to = any_batch(6, 4, 3);
  std::vector<random_picture> pictures;
  for (int i = 0; i < 150; ++i) pictures.push_back(any_picture(any_kind(), 7, 5));
  expect_near_plain(pictures, to, bytes_of(pictures, to));
}

TEST_P(WritePictures, OfNv12InBlackAndWhiteAreBlackAndWhite) {
  for (const bool full_range : {false, true})
    for (const int matrix : {0, 1, 2}) {
      auto kind = any_kind();
      kind.bits = 8;
      kind.shift = 0;
      kind.layout = yuv_layout::y_cbcr;
      kind.matrix = static_cast<yuv_matrix>(matrix);
      kind.full_range = full_range;
      const int codes[][2]{{full_range ? 0 : 16, 0}, {full_range ? 255 : 235, 255}};
      for (const auto& [luma, value] : codes) {
        auto picture = any_picture(kind, 12, 10);
        std::vector<unsigned char> y(picture.bytes[0].size(), static_cast<unsigned char>(luma));
        std::vector<unsigned char> chroma(picture.bytes[1].size(), 128);
        const auto y_memory = memory_of(y), chroma_memory = memory_of(chroma);
        picture.source.planes[0].data = y_memory->data();
        picture.source.planes[1].data = chroma_memory->data();
        std::vector<random_picture> pictures;
        pictures.push_back(std::move(picture));
        for (const auto byte : bytes_of(pictures, any_batch(7, 5, 3))) ASSERT_EQ(byte, value);
      }
    }
}

TEST_P(WritePictures, ShrinkTo100thOfTheSize) {
  for (const auto layout : {yuv_layout::y_cbcr, yuv_layout::y_cb_cr})
    for (const int bits : {8, 10})
      for (const int shift : {0, 1}) {
        auto kind = any_kind();
        kind.layout = layout;
        kind.bits = bits;
        kind.shift = 0;
        kind.chroma_shift_x = kind.chroma_shift_y = shift;
        const auto to = any_batch(35, 2, 3);
        std::vector<random_picture> pictures;
        pictures.push_back(any_picture(kind, 3500, 200));
        expect_near_plain(pictures, to, bytes_of(pictures, to));
      }
}

class WritePicturesArguments : public testing::Test {
 protected:
  std::string refused(errc code) const {
    try {
      write_pictures({&picture, 1}, to, nullptr);
    } catch (const error& failure) {
      EXPECT_EQ(failure.code(), code) << failure.what();
      return failure.what();
    }
    return "";
  }

  template <class F>
  void expect(errc code, F spoil, const char* text) {
    const auto kept_picture = picture;
    const auto kept_to = to;
    spoil();
    EXPECT_THAT(refused(code), HasSubstr(text));
    picture = kept_picture;
    to = kept_to;
  }

  emulated_grids grids{1};
  std::vector<unsigned char> from = std::vector<unsigned char>(16 * 6 + 16 * 3);
  std::vector<float> out = std::vector<float>(5 * 4 * 3);
  yuv_picture picture{
      .planes = {{{from.data(), 16}, {from.data() + 16 * 6, 16}, {}}}, .width = 8, .height = 6};
  image_batch to{.data = out.data(), .width = 5, .height = 4};
};

TEST_F(WritePicturesArguments, ThatAreRightAreTaken) {
  EXPECT_EQ(refused(errc::invalid_argument), "");
  picture.bits = 10;
  picture.shift = 6;
  EXPECT_EQ(refused(errc::invalid_argument), "");
  EXPECT_EQ(grids.launches, 2);
}

TEST_F(WritePicturesArguments, ThatCannotBeAreNamed) {
  const auto code = errc::invalid_argument;
  expect(code, [&] { picture.planes[0].data = nullptr; }, "picture 0: planes[0].data is null");
  expect(code, [&] { picture.planes[1].data = nullptr; }, "picture 0: planes[1].data is null");
  expect(code, [&] { picture.layout = yuv_layout::y_cb_cr; }, "planes[2].data is null");
  expect(code, [&] { picture.planes[0].pitch = 7; }, "planes[0].pitch is 7 bytes, a row has 8");
  expect(code, [&] { picture.planes[1].pitch = 0; }, "planes[1].pitch is 0 bytes, a row has 8");
  expect(
      code, [&] { picture.bits = 10, picture.planes[1].pitch = 15; },
      "planes[1].pitch is 15 bytes, a row has 16");
  expect(code, [&] { picture.bits = 10, picture.planes[0].pitch = 17; }, "multiple of 2");
  expect(
      code, [&] { picture.bits = 16, picture.planes[0].data = from.data() + 1; }, "multiple of 2");
  expect(code, [&] { picture.width = 0; }, "width x height");
  expect(code, [&] { picture.crop = {.left = 1, .width = 8, .height = 2}; }, "crop");
  expect(code, [&] { to.channels = 1; }, "to.channels");
  expect(code, [&] { to.data = nullptr; }, "to.data is null");
  EXPECT_EQ(grids.launches, 0);
}

TEST_F(WritePicturesArguments, OfUnhandledKindsAreNamed) {
  const auto code = errc::unsupported;
  expect(code, [&] { picture.bits = 7; }, "bits is 7");
  expect(code, [&] { picture.bits = 17; }, "bits is 17");
  expect(code, [&] { picture.shift = 1; }, "shift is 1");
  expect(code, [&] { picture.bits = 12, picture.shift = 5; }, "shift is 5");
  expect(code, [&] { picture.chroma_shift_x = 3; }, "chroma_shift_x");
  expect(code, [&] { picture.chroma_shift_y = -1; }, "chroma_shift_y");
  expect(code, [&] { picture.layout = static_cast<yuv_layout>(3); }, "layout");
  expect(code, [&] { picture.siting = static_cast<yuv_siting>(3); }, "siting");
  expect(code, [&] { picture.matrix = static_cast<yuv_matrix>(3); }, "matrix");
  EXPECT_EQ(grids.launches, 0);
}

TEST_F(WritePicturesArguments, OnAStreamHaveItsDeviceAsTheCurrentOne) {
  const fake_driver driver({.devices = 2});
  int current = 0;
  grids.before_launch = [&] { current = device::current().index(); };
  const stream on(device(1));
  write_pictures({&picture, 1}, to, on);
  EXPECT_EQ(current, 1);
  EXPECT_EQ(grids.last_stream, on.handle());
  EXPECT_EQ(device::current().index(), 0);
  to.data = nullptr;
  EXPECT_THROW(write_pictures({&picture, 1}, to, on), error);
}

TEST_F(WritePicturesArguments, FitIntoTheBatchOnItsDevice) {
  const fake_driver driver({.devices = 2});
  const std::vector<yuv_picture> pictures(3, picture);
  out.resize(pictures.size() * out.size());
  to.data = out.data();
  to.images = 2;
  to.gpu = 1;
  const stream on(device(1));
  write_pictures(std::span(pictures).first(2), to, on);
  const auto launches = grids.launches;
  EXPECT_THAT([&] { write_pictures(pictures, to, on); },
              ThrowsMessage<error>(HasSubstr("there are 3 images, but to has 2 slots")));
  EXPECT_THAT([&] { write_pictures({&picture, 1}, to, stream(device(0))); },
              ThrowsMessage<error>(HasSubstr("to.data is memory of GPU 1, and the stream is one of "
                                             "GPU 0")));
  EXPECT_EQ(grids.launches, launches);
}

LADE_KERNEL_SUITE(WritePictures);

}  // namespace lade::cuda::write_pictures_test
