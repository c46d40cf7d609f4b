#include "../support/seed.hpp"

#include <lade/error.hpp>
#include <lade/media/boxes.hpp>
#include <lade/media/mask.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <string>
#include <vector>

namespace lade::media::boxes_test {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

static tensor boxes_of(std::initializer_list<std::array<double, 4>> boxes) {
  const tensor made(element_type::f64, {static_cast<std::int64_t>(boxes.size()), 4});
  auto* out = made.data<double>();
  for (const auto& box : boxes) out = std::ranges::copy(box, out).out;
  return made;
}

template <class T>
static std::vector<T> values_of(const tensor& of) {
  return {of.data<T>(), of.data<T>() + of.spec().elements()};
}

// The part of 100 x 80 from (20, 10) of 40 x 20, at twice the width and three times the height.
static chosen_crop enlarged(bool flip = false) {
  return {{20, 10, 40, 20}, true, flip, {100, 80}, {80, 60}};
}

TEST(Boxes, AreMovedToTheResultOfTheirCrop) {
  const auto boxes = boxes_of({{25, 12, 30, 20}});
  EXPECT_THAT(values_of<double>(crop_boxes(boxes, enlarged()).boxes()), ElementsAre(10, 6, 20, 30));
  EXPECT_THAT(values_of<double>(crop_boxes(boxes, enlarged(true)).boxes()),
              ElementsAre(60, 6, 70, 30));
}

TEST(Boxes, HaveTheFormatOfTheOptionsBeforeAndAfter) {
  const auto in = [](box_format format, std::array<double, 4> box) {
    return values_of<double>(crop_boxes(boxes_of({box}), enlarged(), {.format = format}).boxes());
  };
  EXPECT_THAT(in(box_format::xywh, {25, 12, 5, 8}), ElementsAre(10, 6, 10, 24));
  EXPECT_THAT(in(box_format::cxcywh, {27.5, 16, 5, 8}), ElementsAre(15, 18, 10, 24));
}

TEST(Boxes, KeepTheTypeOfTheirTensor) {
  const tensor boxes(element_type::f32, {1, 4});
  std::ranges::copy(std::array<float, 4>{25, 12, 30, 20}, boxes.data<float>());
  const auto cropped = crop_boxes(boxes, enlarged());
  EXPECT_THAT(values_of<float>(cropped.boxes()), ElementsAre(10, 6, 20, 30));
}

TEST(Boxes, AreCutOffAtTheBorderUnlessTheyAreNotToBe) {
  const auto boxes = boxes_of({{15, 5, 70, 40}});
  EXPECT_THAT(values_of<double>(crop_boxes(boxes, enlarged()).boxes()), ElementsAre(0, 0, 80, 60));
  EXPECT_THAT(values_of<double>(crop_boxes(boxes, enlarged(), {.clip = false}).boxes()),
              ElementsAre(-10, -15, 100, 90));
}

TEST(Boxes, AreDroppedOutsideOfTheResultAndWhereTooLittleIsLeft) {
  const auto boxes = boxes_of({{0, 0, 20, 10},      // touches
                               {25, 12, 30, 20},    // inside
                               {10, 12, 30, 20},    // a half
                               {25, 12, 25.4, 20},  // narrow
                               {30, 15, 30, 20}});  // without an area
  const auto kept = [&](const box_options& options) {
    return values_of<std::int64_t>(crop_boxes(boxes, enlarged(), options).kept());
  };
  EXPECT_THAT(kept({}), ElementsAre(1, 2));
  EXPECT_THAT(kept({.min_side = 0.75}), ElementsAre(1, 2, 3));
  EXPECT_THAT(kept({.min_side = 0}), ElementsAre(1, 2, 3));
  EXPECT_THAT(kept({.min_side = 12}), ElementsAre(2));
  EXPECT_THAT(kept({.min_visible = 0.5}), ElementsAre(1, 2));
  EXPECT_THAT(kept({.min_visible = 0.51}), ElementsAre(1));
  EXPECT_THAT(kept({.clip = false, .min_visible = 0.51}), ElementsAre(1));
}

TEST(Boxes, MayBeNone) {
  const auto none = crop_boxes(tensor(element_type::f32, {0, 4}), enlarged());
  EXPECT_EQ(none.boxes().spec(), (tensor_spec{element_type::f32, {0, 4}}));
  EXPECT_EQ(none.kept().spec(), (tensor_spec{element_type::i64, {0}}));
  EXPECT_EQ(none.rows_of(tensor(element_type::i32, {0, 3})).shape(), (dimensions{0, 3}));
}

TEST(Boxes, RowsOfOtherTensorsFollowThem) {
  const auto cropped =
      crop_boxes(boxes_of({{25, 12, 30, 20}, {0, 0, 5, 5}, {30, 12, 40, 20}}), enlarged());
  const tensor labels(element_type::i64, {3});
  std::ranges::copy(std::array<std::int64_t, 3>{7, 8, 9}, labels.data<std::int64_t>());
  EXPECT_THAT(values_of<std::int64_t>(cropped.rows_of(labels)), ElementsAre(7, 9));
  const tensor pairs(element_type::u8, {3, 2});
  std::ranges::copy(std::array<std::uint8_t, 6>{1, 2, 3, 4, 5, 6}, pairs.data<std::uint8_t>());
  EXPECT_THAT(values_of<std::uint8_t>(cropped.rows_of(pairs)), ElementsAre(1, 2, 5, 6));
  for (std::int64_t rows : {2, 4})
    EXPECT_THAT([&] { cropped.rows_of(tensor(element_type::i64, {rows})); },
                ThrowsMessage<error>(HasSubstr("the values have " + std::to_string(rows) +
                                               " rows, there were 3 boxes")));
  EXPECT_THAT([&] { cropped.rows_of(tensor(element_type::u8, {})); },
              ThrowsMessage<error>(HasSubstr("the values must be contiguous")));
}

// The mask of an object that fills its box shows which pixels of the result the box has: those
// whose centre lies in it.
TEST(Boxes, HaveThePixelsOfTheMaskOfTheirObject) {
  const auto seed = test::new_seed();
  SCOPED_TRACE("LADE_SEED=" + std::to_string(seed));
  random draw(seed);
  for (int round = 0; round < 300; ++round) {
    const auto up_to = [&](int most) {
      return 1 + static_cast<int>(draw.below(static_cast<std::uint64_t>(most)));
    };
    const int width = up_to(60), height = up_to(60);
    const image_options how{.width = up_to(40),
                            .height = up_to(40),
                            .fit = static_cast<image_fit>(draw.below(4)),
                            .min_area = 0.1};
    const auto crop = choose_crop(width, height, how, draw);
    const int left = up_to(width) - 1, top = up_to(height) - 1;
    const int right = left + up_to(width - left), bottom = top + up_to(height - top);
    const tensor mask(element_type::u8, {height, width});
    for (int y = 0; y < height; ++y)
      for (int x = 0; x < width; ++x)
        *mask[y][x].data<std::uint8_t>() = left <= x && x < right && top <= y && y < bottom;
    const auto shown = crop_mask(mask, crop);
    const auto cropped =
        crop_boxes(boxes_of({{double(left), double(top), double(right), double(bottom)}}), crop,
                   {.min_side = 0});
    const auto box = values_of<double>(cropped.boxes());
    for (int i = 0; i < how.height; ++i)
      for (int j = 0; j < how.width; ++j) {
        const double y = i + 0.5, x = j + 0.5;
        const auto is_near = [](double a, double b) { return std::abs(a - b) < 1e-6; };
        if (!box.empty() &&
            (is_near(x, box[0]) || is_near(x, box[2]) || is_near(y, box[1]) || is_near(y, box[3])))
          continue;
        const bool inside = !box.empty() && box[0] < x && x < box[2] && box[1] < y && y < box[3];
        ASSERT_EQ(*shown[i][j].data<std::uint8_t>() == 1, inside)
            << "round " << round << ", " << i << ", " << j;
      }
  }
}

TEST(Boxes, ErrorsNumberTheInvalidBox) {
  const auto refused = [](std::array<double, 4> box, const char* why) {
    const auto in = sample("a.jpg").with_field({"boxes", boxes_of({{0, 0, 1, 1}, box})});
    try {
      crop_boxes(in, "boxes", enlarged());
      ADD_FAILURE() << why;
    } catch (const error& failure) {
      EXPECT_EQ(failure.code(), errc::invalid_data);
      EXPECT_THAT(failure.what(), HasSubstr(std::string("crop the boxes boxes of a.jpg: ") + why));
    }
  };
  EXPECT_THAT([] { crop_boxes(sample("a.jpg").with_field({"boxes", 7}), "boxes", enlarged()); },
              ThrowsMessage<error>(HasSubstr("crop the boxes boxes of a.jpg: its field boxes holds "
                                             "integer instead of a tensor")));
  refused({5, 0, 4, 1}, "box 1 ends before it begins");
  refused({0, 5, 1, 4}, "box 1 ends before it begins");
  refused({std::numeric_limits<double>::quiet_NaN(), 0, 1, 1}, "box 1 is not finite");
  refused({0, 0, 1, std::numeric_limits<double>::infinity()}, "box 1 is not finite");
  refused({0, -std::numeric_limits<double>::infinity(), 1, 1}, "box 1 is not finite");
}

TEST(Boxes, OtherTensorsOptionsAndCropsAreRefused) {
  const auto refused = [](const tensor& boxes, const box_options& options, const char* why) {
    EXPECT_THAT([&] { crop_boxes(boxes, enlarged(), options); },
                ThrowsMessage<error>(HasSubstr(std::string("crop boxes: ") + why)));
  };
  const auto boxes = boxes_of({{0, 0, 1, 1}});
  refused(tensor(element_type::i64, {1, 4}), {}, "boxes must be contiguous f32 or f64");
  refused(tensor(element_type::f32, {1, 5}), {}, "boxes must be contiguous f32 or f64");
  refused(tensor(element_type::f32, {4}), {}, "boxes must be contiguous f32 or f64");
  refused(boxes, {.format = box_format{3}}, "format is no value of box_format");
  refused(boxes, {.min_visible = 1.5}, "min_visible must be in [0, 1]");
  refused(boxes, {.min_side = -1}, "min_side must be 0 or above");
  EXPECT_THAT([&] { crop_boxes(boxes, {}); },
              ThrowsMessage<error>(HasSubstr("crop boxes: the crop is of an image without")));
}

}  // namespace lade::media::boxes_test
