#include <lade/cuda/nvdec/capabilities.hpp>
#include <lade/cuda/nvdec/surfaces.hpp>
#include <lade/error.hpp>
#include <lade/runtime.hpp>
#include <lade/sync_wait.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "../../media/av/media_files.hpp"
#include "../../support/coroutines.hpp"
#include "../fake_driver.hpp"
#include "fake_nvcuvid.hpp"
#include "host_surfaces.hpp"

namespace lade::cuda {

using media::video_recipe;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing_support::code_of;

static media::video video_of(const std::string& recipe) {
  return media::video(media::read_bytes(media::video_path(video_recipe(recipe))), recipe);
}

static std::vector<std::int64_t> all_of(const media::video& of) {
  std::vector<std::int64_t> numbers(static_cast<std::size_t>(of.size()));
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

// What NVDEC decodes, in the order in which it shows it.
static std::vector<std::pair<std::int64_t, host_picture>> decode_on(
    runtime& in, const media::video& from, const std::vector<std::int64_t>& numbers,
    const surface_options& options = {}) {
  stream work(device(0));
  std::vector<std::pair<std::int64_t, surface_copy>> copies;
  use_surface copy = [&](std::int64_t number, const surface& decoded) {
    copies.emplace_back(number, surface_copy(decoded, work));
  };
  sync_wait(in, decode_surfaces(from, numbers, work, copy, options));
  std::vector<std::pair<std::int64_t, host_picture>> pictures;
  for (const auto& [number, copied] : copies) pictures.emplace_back(number, copied.picture());
  return pictures;
}

// The same, decoded by the CPU.
static std::vector<std::pair<std::int64_t, host_picture>> decode_on_cpu(
    const media::video& from, const std::vector<std::int64_t>& numbers) {
  std::vector<std::pair<std::int64_t, host_picture>> pictures;
  from.for_each_frame(numbers, [&](std::int64_t number, const media::frame& decoded) {
    pictures.emplace_back(number, picture_of_frame(decoded));
  });
  return pictures;
}

static std::vector<std::int64_t> numbers_of(
    const std::vector<std::pair<std::int64_t, host_picture>>& pictures) {
  std::vector<std::int64_t> numbers;
  for (const auto& [number, picture] : pictures) numbers.push_back(number);
  return numbers;
}

// A GPU without a GPU. At its end, nothing was misused, and nothing lives.
class fake_gpu {
 public:
  fake_gpu() : fake_gpu(fake_nvcuvid::options{}) {}
  explicit fake_gpu(const fake_nvcuvid::options& how) : nvdec(how) {}
  ~fake_gpu() {
    EXPECT_THAT(driver.faults(), IsEmpty());
    EXPECT_THAT(nvdec.faults(), IsEmpty());
    EXPECT_EQ(nvdec.live().parsers, 0u);
    EXPECT_EQ(nvdec.live().mapped, may_abandon ? nvdec.live().mapped : 0u);
    EXPECT_EQ(nvdec.live().decoders, may_abandon ? nvdec.live().decoders : 0u);
    EXPECT_EQ(nvdec.live().contexts, 0);
  }

  fake_driver driver;
  fake_nvcuvid nvdec;
  bool may_abandon = false;
};

class NvdecSurfaces : public testing::TestWithParam<const char*> {};

TEST_P(NvdecSurfaces, EqualThoseOfTheCpu) {
  const auto from = video_of(GetParam());
  fake_gpu gpu;
  runtime runtime({.threads = 2});
  const auto numbers = all_of(from);
  const auto decoded = decode_on(runtime, from, numbers);
  EXPECT_EQ(numbers_of(decoded), numbers);
  EXPECT_TRUE(decoded == decode_on_cpu(from, numbers));
  EXPECT_EQ(fake_nvcuvid::depth(), 0u);
}

TEST_P(NvdecSurfaces, OfSomeFramesEqualThoseOfTheCpu) {
  const auto from = video_of(GetParam());
  fake_gpu gpu;
  runtime runtime({.threads = 2});
  const auto last = from.size() - 1;
  for (const auto& numbers :
       std::vector<std::vector<std::int64_t>>{{0}, {7, 3}, {13, 14, 22}, {last}}) {
    auto sorted = numbers;
    std::ranges::sort(sorted);
    EXPECT_TRUE(decode_on(runtime, from, numbers) == decode_on_cpu(from, sorted));
  }
}

INSTANTIATE_TEST_SUITE_P(Videos, NvdecSurfaces,
                         testing::Values("h264.mp4", "h264-long-gop.mp4", "h264-open-gop.mp4",
                                         "h264-interlaced.mp4", "h264.ts", "h264-444.mkv",
                                         "hevc.mp4", "hevc-closed.mkv", "mpeg2.mkv",
                                         "late-start.mp4", "h264-negative.mp4"),
                         [](const auto& instance) {
                           std::string name;
                           for (const char each : std::string(instance.param))
                             if (std::isalnum(static_cast<unsigned char>(each)) != 0) name += each;
                           return name;
                         });

}  // namespace lade::cuda
