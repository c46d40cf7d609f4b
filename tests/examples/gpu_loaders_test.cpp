// What the loaders do with --device, on a GPU without a GPU.

#include <lade/cuda/error.hpp>
#include <lade/error.hpp>
#include <lade/lade.hpp>
#include <lade/media/crop.hpp>
#include <lade/media/png.hpp>
#include <lade/random.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "../../cuda/nvjpeg_api.hpp"
#include "../../examples/gpu.hpp"
#include "../cuda/fake_nvjpeg.hpp"
#include "../cuda/nvdec/fake_gpu.hpp"
#include "../cuda/nvdec/host_clips.hpp"
#include "../support/pipelines.hpp"

namespace lade::cuda {

using test::collect;

struct loader_world {
  loader_world() {
    program.name = "loader";
    wanted.device = 0;
    wanted.batch = 3;
    wanted.size = 32;
  }

  fake_gpu gpu;
  std::optional<fake_nvjpeg> nvjpeg;
  fake_kernels kernels;
  lade::runtime runtime{{.threads = 2}};
  ::options wanted;
  ::loader program;
  ::report result{program, "", {}};
};

static sample png_of(int number) {
  tensor pixels(element_type::u8, {48, 64, 3});
  for (int y = 0, i = 0; y < 48; ++y)
    for (int x = 0; x < 64; ++x)
      for (int c = 0; c < 3; ++c)
        pixels.data<std::uint8_t>()[i++] = static_cast<std::uint8_t>(2 * x + c * y + number);
  return sample(std::to_string(number) + ".png", number).with_data(media::encode_png(pixels));
}

static sample jpeg_of(const tiny_jpeg& file) {
  const auto text = file.bytes();
  buffer bytes(text.size());
  std::memcpy(bytes.data(), text.data(), text.size());
  return sample("a.jpg", 7).with_data(bytes);
}

// The picture that nvJPEG draws for such a file.
static sample png_of(const tiny_jpeg& file) {
  tensor pixels(element_type::u8, {file.height, file.width, 3});
  for (int y = 0, i = 0; y < file.height; ++y)
    for (int x = 0; x < file.width; ++x)
      for (int c = 0; c < 3; ++c) pixels.data<std::uint8_t>()[i++] = drawn(file.seed, x, y, c);
  return sample("a.png").with_data(media::encode_png(pixels));
}

static std::vector<sample> pngs() { return {png_of(0), png_of(10), png_of(20), png_of(30)}; }

static media::image_options middle_of_images(media::image_layout layout, element_type type) {
  return {.width = 32,
          .height = 32,
          .fit = media::image_fit::centre_crop,
          .layout = layout,
          .type = type};
}

TEST(GpuLoaders, DecodeImagesAsTheCpuDoes) {
  for (auto type : {element_type::u8, element_type::f32}) {
    loader_world world;
    world.nvjpeg.emplace(world.gpu.driver);
    const auto layout =
        type == element_type::u8 ? media::image_layout::hwc : media::image_layout::chw;
    const auto image = middle_of_images(layout, type);
    const auto made =
        collect(world.runtime, images_by_gpu(from(pngs()), image, world.wanted, world.result));
    ASSERT_EQ(made.size(), 2u);
    for (int i = 0; i < 4; ++i) {
      const auto& batch = made[static_cast<std::size_t>(i / 3)];
      const auto expected = media::decode_image(image)(pngs()[static_cast<std::size_t>(i)]);
      EXPECT_LE(largest_difference(batch.tensor()[i % 3], expected),
                type == element_type::u8 ? 1 : 0.01F);
      EXPECT_EQ(batch.labels().data<std::int64_t>()[i % 3], 10 * i);
    }
  }
}

TEST(GpuLoaders, DecodeJpegsByNvjpeg) {
  loader_world world;
  world.nvjpeg.emplace(world.gpu.driver);
  const auto image = middle_of_images(media::image_layout::hwc, element_type::u8);
  const std::vector<sample> files{jpeg_of({.width = 40, .height = 40, .seed = 3}), png_of(0)};
  const auto made =
      collect(world.runtime, images_by_gpu(from(files), image, world.wanted, world.result));
  ASSERT_EQ(made.size(), 1u);
  EXPECT_EQ(made[0].size(), 2u);
  EXPECT_EQ(world.nvjpeg->engine_batches(), std::vector<std::size_t>{1});
}

// Where there is no nvJPEG.
TEST(GpuLoaders, LeaveImagesToTheCpuWithoutNvjpeg) {
  loader_world world;
  try {
    (void)nvjpeg();
    std::puts("nvJPEG is loaded");
    return;
  } catch (const error& missing) {
    EXPECT_EQ(missing.code(), errc::unsupported);
  }
  const auto image = middle_of_images(media::image_layout::hwc, element_type::u8);
  const auto made =
      collect(world.runtime, images_by_gpu(from(pngs()), image, world.wanted, world.result));
  ASSERT_EQ(made.size(), 2u);
  EXPECT_EQ(largest_difference(made[1].tensor()[0], media::decode_image(image)(pngs()[3])), 0);
}

TEST(GpuLoaders, CropImagesAtRandomByTheSeedOfTheRun) {
  loader_world world;
  world.nvjpeg.emplace(world.gpu.driver);
  auto image = middle_of_images(media::image_layout::hwc, element_type::u8);
  image.fit = media::image_fit::random_crop;
  const auto same = std::vector<sample>(3, png_of(0));
  const auto images = images_by_gpu(from(same), image, world.wanted, world.result);
  const auto once = collect(world.runtime, images, {.epoch = 0, .seed = 1}).at(0).tensor();
  const auto again = collect(world.runtime, images, {.epoch = 0, .seed = 1}).at(0).tensor();
  const auto other = collect(world.runtime, images, {.epoch = 0, .seed = 2}).at(0).tensor();
  EXPECT_EQ(largest_difference(once, again), 0);
  EXPECT_GT(largest_difference(once, other), 2);
  EXPECT_GT(largest_difference(once[0], once[1]), 2);
}

static random draw_of(const sample& from) {
  return random(std::bit_cast<std::uint64_t>(from.field("draw").integer()));
}

TEST(GpuLoaders, CropMirrorAndNormaliseImagesAsTheCpuDoesWithTheSameDraw) {
  loader_world world;
  world.nvjpeg.emplace(world.gpu.driver);
  world.wanted.batch = 16;
  auto image = middle_of_images(media::image_layout::chw, element_type::f32);
  image.fit = media::image_fit::random_crop;
  image.mean = {0.5F, 0.4F, 0.3F};
  image.stddev = {0.2F, 0.3F, 0.4F};
  const tiny_jpeg picture{.width = 64, .height = 48, .seed = 3};
  const std::vector<sample> files(16, jpeg_of(picture));
  const auto made =
      collect(world.runtime, images_by_gpu(from(files), image, world.wanted, world.result));
  ASSERT_EQ(made.size(), 1u);
  int mirrored = 0;
  for (std::int64_t i = 0; i < 16; ++i) {
    const auto draw = draw_of(made[0].samples()[static_cast<std::size_t>(i)]);
    const auto expected = media::decode_image(image)(png_of(picture), draw);
    EXPECT_LE(largest_difference(made[0].tensor()[i], expected), 0.021F);  // 1 / 255 / 0.2
    mirrored += media::choose_crop(64, 48, image, draw).flip;
  }
  EXPECT_GT(mirrored, 0);
  EXPECT_LT(mirrored, 16);
  EXPECT_EQ(world.nvjpeg->engine_batches(), std::vector<std::size_t>{16});
}

TEST(GpuLoaders, SkipBadImagesOneByOne) {
  loader_world world;
  world.nvjpeg.emplace(world.gpu.driver);
  world.wanted.skip_bad = true;
  std::vector<sample> files{png_of(0), sample("bad.png").with_data(buffer(4)), png_of(10)};
  const auto image = middle_of_images(media::image_layout::hwc, element_type::u8);
  const auto made =
      collect(world.runtime, images_by_gpu(from(files), image, world.wanted, world.result));
  ASSERT_EQ(made.size(), 1u);
  EXPECT_EQ(made[0].size(), 2u);
}

TEST(GpuLoaders, DecodeClipsAsTheCpuDoes) {
  loader_world world;
  const media::clip_options middle{
      .sampling = {.frames = 4, .position = media::clip_position::centre},
      .width = 32,
      .height = 24};
  const std::vector<sample> videos{sample_of("h264.mp4"), sample_of("mpeg4-b.mp4")};
  const auto made =
      collect(world.runtime, clips_by_gpu(from(videos), middle, world.wanted, world.result));
  ASSERT_EQ(made.size(), 1u);
  for (std::size_t i = 0; i < videos.size(); ++i)
    EXPECT_LE(largest_difference(made[0].tensor()[static_cast<std::int64_t>(i)],
                                 media::decode_clip(middle)(videos[i])),
              1);
}

// What the report says behind "GPU".
static std::string gpu_row_of(report& result) {
  testing::internal::CaptureStdout();
  result.print({}, {});
  std::fflush(stdout);
  const auto text = testing::internal::GetCapturedStdout();
  const auto row = text.rfind("GPU  ");
  if (row == text.npos) return {};
  const auto begin = text.find_first_not_of(' ', row + 3);
  return text.substr(begin, text.find('\n', begin) - begin);
}

TEST(GpuLoaders, ReportWhoHasDecodedHowManyImages) {
  loader_world world;
  world.nvjpeg.emplace(world.gpu.driver);
  world.nvjpeg->set_unsupported_by_engines(4);
  world.nvjpeg->set_unsupported_by_engines(5);
  world.wanted.batch = 16;
  world.wanted.skip_bad = true;
  const std::string rotation(
      "\xe1"
      "Exif\0\0MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0",
      33);
  std::vector<sample> files = pngs();
  for (std::uint8_t seed = 1; seed <= 5; ++seed) files.push_back(jpeg_of({.seed = seed}));
  for (std::uint8_t seed = 6; seed <= 7; ++seed)
    files.push_back(jpeg_of({.seed = seed, .segments = {rotation}}));
  files.push_back(jpeg_of({.seed = 8, .ends = false}));
  const auto image = middle_of_images(media::image_layout::hwc, element_type::u8);
  (void)collect(world.runtime, images_by_gpu(from(files), image, world.wanted, world.result));
  EXPECT_THAT(gpu_row_of(world.result),
              testing::StartsWith("3 by JPEG engines, 2 by its other units, 7 by the CPU; "
                                  "3 skipped, the first: "));
}

TEST(GpuLoaders, ReportWhoHasDecodedHowManyClips) {
  loader_world world;
  const media::clip_options small{.sampling = {.frames = 2}, .width = 32, .height = 24};
  const std::vector<sample> videos{sample_of("h264.mp4"), sample_of("h264.mp4"),
                                   sample_of("mpeg4-b.mp4")};
  (void)collect(world.runtime, clips_by_gpu(from(videos), small, world.wanted, world.result));
  EXPECT_THAT(gpu_row_of(world.result),
              testing::StartsWith("2 by NVDEC, 1 by the CPU, the first: "));
}

TEST(GpuLoaders, RefuseToSkipBadClips) {
  loader_world world;
  world.wanted.skip_bad = true;
  EXPECT_THROW((void)clips_by_gpu(from(std::vector<sample>{}), {}, world.wanted, world.result),
               usage_error);
}

TEST(GpuLoaders, NameAGpuThatIsNotThere) {
  loader_world world;
  world.wanted.device = 1;
  const media::clip_options small{.width = 32, .height = 32};
  EXPECT_THAT([&] { (void)images_by_gpu(from(pngs()), {}, world.wanted, world.result); },
              testing::ThrowsMessage<error>(testing::HasSubstr("use GPU 1: ")));
  EXPECT_THAT([&] { (void)clips_by_gpu(from(pngs()), small, world.wanted, world.result); },
              testing::ThrowsMessage<error>(testing::HasSubstr("use GPU 1: ")));
}

}  // namespace lade::cuda
