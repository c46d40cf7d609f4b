// What the loaders do with --device, on a GPU without a GPU.

#include <lade/cuda/error.hpp>
#include <lade/error.hpp>
#include <lade/lade.hpp>
#include <lade/media/png.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
