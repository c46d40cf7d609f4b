#include <lade/cuda/change_layout.hpp>
#include <lade/cuda/stream.hpp>
#include <lade/error.hpp>
#include <lade/tensor.hpp>

#include "fake_driver.hpp"
#include "kernel_fixture.hpp"

#include <gmock/gmock.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace lade::cuda::change_layout_test {

using testing::HasSubstr;

class ChangeLayout : public kernel_test {
 protected:
  // Elements of any bits; floats are small or large, infinite or NaN.
  std::vector<unsigned char> any_elements(element_type type, std::size_t count) {
    auto bytes = any_bytes(count * element_bytes(type));
    if (type != element_type::f32) return bytes;
    for (std::size_t i = 0; i < count; ++i) {
      if (below(8) == 0) continue;
      const auto value = static_cast<float>(std::exp(draw.uniform(-12, 12)) * (maybe() ? 1 : -1));
      std::memcpy(bytes.data() + 4 * i, &value, 4);
    }
    return bytes;
  }

  std::vector<unsigned char> changed(const std::vector<unsigned char>& elements, device_images from,
                                     device_images to, const image_extents& of) {
    const auto bytes =
        std::size_t(of.images * of.height * of.width * of.channels) * element_bytes(to.type);
    const auto in = memory_of(elements, 0, true);
    const auto out = memory_of(std::vector<unsigned char>(bytes, 0xa5), 0, true);
    from.data = in->data();
    to.data = out->data();
    change_layout(from, to, of, nullptr);
    finish();
    return out->read();
  }
};

static std::size_t index_in(pixel_layout layout, const image_extents& of, std::int64_t i,
                            std::int64_t y, std::int64_t x, std::int64_t c) {
  const auto index = layout == pixel_layout::hwc
                         ? ((i * of.height + y) * of.width + x) * of.channels + c
                         : ((i * of.channels + c) * of.height + y) * of.width + x;
  return static_cast<std::size_t>(index);
}

// Whether an element is the nearest of its type to a value.
static testing::AssertionResult is_nearest(element_type type, double element, double value) {
  if (std::isnan(value))
    return type == element_type::u8 ? testing::AssertionResult(element == 0)
                                    : testing::AssertionResult(std::isnan(element));
  if (type == element_type::u8) return testing::AssertionResult(element == plain_byte(value));
  if (type == element_type::f16 && std::abs(value) >= 65520)
    return testing::AssertionResult(std::isinf(element) && element * value > 0);
  if (std::isinf(value) || std::isinf(element))
    return testing::AssertionResult(std::abs(value) >= 0x1.ffp127 && element * value > 0);
  const double half =
      type == element_type::f16
          ? std::max(std::exp2(std::floor(std::log2(std::abs(value))) - 11), 0x1p-25)
      : type == element_type::bf16
          ? std::max(std::exp2(std::floor(std::log2(std::abs(value))) - 8), 0x1p-134)
          : 0;
  if (std::abs(element - value) <= half) return testing::AssertionSuccess();
  return testing::AssertionFailure() << element << " is not near " << value;
}

TEST_P(ChangeLayout, RoundsEveryValueToTheNearestOfTheNewType) {
  for (int round = 0; round < 300; ++round) {
    const device_images from{.type = any_type(), .layout = static_cast<pixel_layout>(below(2))};
    const device_images to{.type = any_type(), .layout = static_cast<pixel_layout>(below(2))};
    const image_extents of{any_size(5), any_size(30), any_size(30), any_size(5)};
    const auto count = std::size_t(of.images * of.height * of.width * of.channels);
    const auto elements = any_elements(from.type, count);
    const auto result = changed(elements, from, to, of);
    for (std::int64_t i = 0; i < of.images; ++i)
      for (std::int64_t y = 0; y < of.height; ++y)
        for (std::int64_t x = 0; x < of.width; ++x)
          for (std::int64_t c = 0; c < of.channels; ++c)
            ASSERT_TRUE(is_nearest(
                to.type, plain_element(result, to.type, index_in(to.layout, of, i, y, x, c)),
                plain_element(elements, from.type, index_in(from.layout, of, i, y, x, c))))
                << name(from.type) << " to " << name(to.type);
  }
}

TEST_P(ChangeLayout, ThereAndBackIsTheSameBits) {
  for (int round = 0; round < 100; ++round) {
    const auto type = any_type();
    const device_images hwc{.type = type, .layout = pixel_layout::hwc};
    const device_images chw{.type = type, .layout = pixel_layout::chw};
    const image_extents of{any_size(5), any_size(40), any_size(40), any_size(5)};
    const auto elements =
        any_elements(type, std::size_t(of.images * of.height * of.width * of.channels));
    ASSERT_EQ(changed(changed(elements, hwc, chw, of), chw, hwc, of), elements);
  }
}

TEST_P(ChangeLayout, ConvertsEveryHalfToFloatAndBack) {
  std::vector<unsigned char> halves(2 << 16);
  for (unsigned code = 0; code < 1 << 16; ++code) {
    halves[2 * code] = static_cast<unsigned char>(code);
    halves[2 * code + 1] = static_cast<unsigned char>(code >> 8);
  }
  const image_extents of{1, 256, 256, 1};
  for (const auto type : {element_type::f16, element_type::bf16}) {
    const auto floats = changed(halves, {.type = type}, {.type = element_type::f32}, of);
    const auto back = changed(floats, {.type = element_type::f32}, {.type = type}, of);
    for (std::size_t i = 0; i < 1 << 16; ++i) {
      const double value = plain_element(halves, type, i);
      if (std::isnan(value)) {
        ASSERT_TRUE(std::isnan(plain_element(floats, element_type::f32, i))) << i;
        ASSERT_TRUE(std::isnan(plain_element(back, type, i))) << i;
      } else {
        ASSERT_EQ(plain_element(floats, element_type::f32, i), value) << i;
        ASSERT_EQ(back[2 * i], halves[2 * i]) << i;
        ASSERT_EQ(back[2 * i + 1], halves[2 * i + 1]) << i;
      }
    }
  }
}

TEST_P(ChangeLayout, TiesGoToEven) {
  const std::vector<float> values{
      1 + 0x1p-11F, 1 + 3 * 0x1p-11F, 1 + 0x1p-8F, 1 + 3 * 0x1p-8F, 0.5F,
      1.5F,         0x1p-25F,         3 * 0x1p-25F};
  std::vector<unsigned char> floats(4 * values.size());
  std::memcpy(floats.data(), values.data(), floats.size());
  const image_extents of{1, 1, 8, 1};
  const auto as = [&](element_type type, std::size_t i) {
    return plain_element(changed(floats, {.type = element_type::f32}, {.type = type}, of), type, i);
  };
  EXPECT_EQ(as(element_type::f16, 0), 1);
  EXPECT_EQ(as(element_type::f16, 1), 1 + 0x1p-9);
  EXPECT_EQ(as(element_type::bf16, 2), 1);
  EXPECT_EQ(as(element_type::bf16, 3), 1 + 0x1p-6);
  EXPECT_EQ(as(element_type::u8, 4), 0);
  EXPECT_EQ(as(element_type::u8, 5), 2);
  EXPECT_EQ(as(element_type::f16, 6), 0);
  EXPECT_EQ(as(element_type::f16, 7), 0x1p-23);
}

TEST_P(ChangeLayout, ReachesEveryOfMoreImagesThanAGridHasRows) {
  const image_extents of{70000, 1, 1, 3};
  const auto elements = any_elements(element_type::u8, 210000);
  EXPECT_EQ(changed(elements, {.layout = pixel_layout::hwc}, {.layout = pixel_layout::chw}, of),
            elements);
}

class ChangeLayoutArguments : public testing::Test {
 protected:
  std::string refused(errc code = errc::invalid_argument) const {
    try {
      change_layout(from, to, of, nullptr);
    } catch (const error& failure) {
      EXPECT_EQ(failure.code(), code) << failure.what();
      return failure.what();
    }
    return "";
  }

  emulated_grids grids{1};
  alignas(4) unsigned char memory[2][4 * 3 * 4]{};
  device_images from{.data = memory[0]};
  device_images to{.data = memory[1], .type = element_type::f32, .layout = pixel_layout::chw};
  image_extents of{1, 2, 2, 3};
};

TEST_F(ChangeLayoutArguments, ThatCannotBeAreNamed) {
  EXPECT_EQ(refused(), "");
  const auto expect = [&](auto spoil, const char* text) {
    const auto kept = std::tuple(from, to, of);
    spoil();
    EXPECT_THAT(refused(), HasSubstr(text));
    std::tie(from, to, of) = kept;
  };
  expect([&] { from.data = nullptr; }, "from.data is null");
  expect([&] { to.data = nullptr; }, "to.data is null");
  expect([&] { to.data = memory[1] + 2; }, "to.data is not a multiple of 4");
  expect([&] { to.layout = static_cast<pixel_layout>(2); }, "layout");
  expect([&] { of.images = 0; }, "of");
  expect([&] { of.height = -1; }, "of");
  expect([&] { of.width = std::int64_t{1} << 40; }, "of");
  expect([&] { of.images = std::int64_t{1} << 60; }, "of");
  expect([&] { of.channels = std::numeric_limits<std::int64_t>::max(); }, "of");
  to.type = element_type::i64;
  EXPECT_THAT(refused(errc::unsupported), HasSubstr("to.type of i64"));
  EXPECT_EQ(grids.launches, 1);
}

TEST_F(ChangeLayoutArguments, FitIntoTheTensorsThatTheyAreTakenFrom) {
  const fake_driver driver;
  const auto on_gpu = [this](int i, const tensor_spec& spec) {
    const lade::device where{lade::device::kind::cuda, 0};
    return tensor(
        spec, buffer(std::make_shared<int>(), std::as_writable_bytes(std::span(memory[i])), where));
  };
  from = device_images_in(on_gpu(0, {element_type::u8, {1, 2, 2, 3}}), pixel_layout::hwc);
  to = device_images_in(on_gpu(1, {element_type::f32, {1, 3, 2, 2}}), pixel_layout::chw);
  EXPECT_EQ(from.data, memory[0]);
  EXPECT_EQ(to.type, element_type::f32);
  EXPECT_EQ(to.layout, pixel_layout::chw);
  EXPECT_EQ(refused(), "");
  to.bytes = 47;
  EXPECT_THAT(refused(), HasSubstr("to has 47 bytes, and the images take 48"));
  to.bytes = 48;
  from.bytes = 11;
  EXPECT_THAT(refused(), HasSubstr("from has 11 bytes, and the images take 12"));
  from.bytes = 12;
  of.images = 2;
  EXPECT_THAT(refused(), HasSubstr("from has 12 bytes, and the images take 24"));
  const tensor of_cpu(element_type::u8, {1, 2, 2, 3});
  EXPECT_THROW(device_images_in(of_cpu, pixel_layout::hwc), error);
  EXPECT_EQ(grids.launches, 1);
}

TEST_F(ChangeLayoutArguments, AreMemoryOfTheDeviceOfTheStream) {
  const fake_driver driver({.devices = 2});
  from.gpu = to.gpu = 1;
  change_layout(from, to, of, stream(device(1)));
  EXPECT_THAT(refused(), HasSubstr("from.data is memory of GPU 1, and the stream is one of GPU 0"));
  from.gpu = 0;
  EXPECT_THAT(refused(), HasSubstr("to.data is memory of GPU 1"));
  EXPECT_EQ(grids.launches, 1);
}

TEST_F(ChangeLayoutArguments, MayBeMoreThanTwoToThe32Elements) {
  of = {3, 40000, 40000, 1};
  const auto count = static_cast<std::size_t>(3 * 40000LL * 40000);
  const sparse_memory in(count), out(2 * count);
  in.data[count - 1] = 37;
  from.data = in.data;
  to = {.data = out.data, .type = element_type::bf16};
  grids.only = [](const grid_shape& shape, const grid_block& block) {
    return block.x + 1 == shape.x && block.y + 1 == shape.y;
  };
  EXPECT_EQ(refused(), "");
  EXPECT_EQ(out.data[2 * count - 1], 0x42);  // 37 is 0x4214
  EXPECT_EQ(out.data[2 * count - 2], 0x14);
}

LADE_KERNEL_SUITE(ChangeLayout);

}  // namespace lade::cuda::change_layout_test
