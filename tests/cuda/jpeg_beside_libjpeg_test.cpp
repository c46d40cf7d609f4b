// nvJPEG beside libjpeg-turbo: needs a GPU.
#include <lade/cuda/jpeg_decoder.hpp>
#include <lade/cuda/stream.hpp>
#include <lade/error.hpp>
#include <lade/runtime.hpp>
#include <lade/sync_wait.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <cuda_runtime_api.h>

#include "../support/seed.hpp"
#include "jpeg_files.hpp"

namespace lade::cuda {

// A smooth picture with some noise, as photographs have.
static std::vector<unsigned char> picture(const jpeg_encoding& how, std::mt19937_64& random) {
  std::array<double, 6> waves{};
  for (auto& wave : waves) wave = 0.01 + static_cast<double>(random() % 1000) / 10'000;
  std::vector<unsigned char> pixels;
  for (int y = 0; y < how.height; ++y)
    for (int x = 0; x < how.width; ++x)
      for (int c = 0; c < how.channels(); ++c) {
        const auto i = static_cast<std::size_t>(c);
        const double wave = std::sin(x * waves[2 * i]) * std::cos(y * waves[2 * i + 1]);
        const double noise = static_cast<double>(random() % 16);
        pixels.push_back(static_cast<unsigned char>(120 + 100 * wave + noise));
      }
  return pixels;
}

static tensor decode_by_libjpeg(const buffer& file) {
  jpeg_decompress_struct jpeg{};
  jpeg_error_mgr errors{};
  jpeg.err = jpeg_std_error(&errors);
  jpeg_create_decompress(&jpeg);
  jpeg_mem_src(&jpeg, reinterpret_cast<const unsigned char*>(file.data()), file.size());
  jpeg_read_header(&jpeg, TRUE);
  jpeg.out_color_space = JCS_RGB;
  jpeg_start_decompress(&jpeg);
  tensor image(element_type::u8, {static_cast<std::int64_t>(jpeg.output_height),
                                  static_cast<std::int64_t>(jpeg.output_width), 3});
  while (jpeg.output_scanline < jpeg.output_height) {
    auto* row = image.data<std::uint8_t>() + jpeg.output_scanline * jpeg.output_width * 3;
    jpeg_read_scanlines(&jpeg, &row, 1);
  }
  jpeg_finish_decompress(&jpeg);
  jpeg_destroy_decompress(&jpeg);
  return image;
}

static std::vector<std::uint8_t> on_host(const tensor& image) {
  std::vector<std::uint8_t> bytes(image.spec().bytes());
  EXPECT_EQ(cudaMemcpy(bytes.data(), image.bytes(), bytes.size(), cudaMemcpyDeviceToHost),
            cudaSuccess);
  return bytes;
}

// The distance that the contract of jpeg_decoder states.
static void expect_near(const std::vector<std::uint8_t>& values, const std::uint8_t* expected) {
  double sum = 0;
  std::size_t far = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const int difference = std::abs(values[i] - expected[i]);
    sum += difference;
    far += difference > 8;
  }
  const auto count = static_cast<double>(values.size());
  std::printf("mean difference %.4f, more than 8 for %.6f\n", sum / count,
              static_cast<double>(far) / count);
  EXPECT_LE(sum / count, 1);
  EXPECT_LE(static_cast<double>(far) / count, 0.001);
}

// Engines decode baseline images, but for chroma in 4:1:1 (nvjpeg.h, NVJPEG_BACKEND_HARDWARE).
static bool is_for_engines(const jpeg_encoding& how) {
  return !how.progressive && how.columns_per_chroma != 4;
}

class GpuJpegDecoder : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    if (const auto why = why_no_jpegs(); !why.empty()) GTEST_SKIP() << why;
  }

  std::vector<jpeg_encoding> encodings() {
    std::vector<jpeg_encoding> all;
    for (bool progressive : {false, true})
      for (auto [columns, rows] : {std::pair(1, 1), {2, 1}, {2, 2}, {1, 2}, {4, 1}, {0, 0}})
        for (int round = 0; round < 2; ++round)
          all.push_back({16 + static_cast<int>(random() % 700),
                         16 + static_cast<int>(random() % 700), columns, rows, progressive});
    return all;
  }

  std::vector<decoded_jpeg> decode(const jpeg_decoder& decoder, std::vector<jpeg_source> files) {
    return sync_wait(runtime, decoder.decode(std::move(files)));
  }

  std::uint64_t seed = test::new_seed();
  testing::ScopedTrace trace{__FILE__, __LINE__, "seed " + std::to_string(seed)};
  std::mt19937_64 random{seed};
  lade::runtime runtime{{.threads = 4}};
};

TEST_P(GpuJpegDecoder, IsNearLibjpeg) {
  jpeg_decoder decoder(device(0), decode_by_libjpeg, {.hardware = GetParam()});
  const auto all = encodings();
  std::vector<buffer> files;
  std::vector<jpeg_source> sources;
  for (const auto& how : all) {
    files.push_back(encode_jpeg(how, picture(how, random)));
    sources.emplace_back(files.back());
  }
  const auto decoded = decode(decoder, std::move(sources));
  for (std::size_t i = 0; i < all.size(); ++i) {
    SCOPED_TRACE(std::to_string(i));
    const auto expected = decode_by_libjpeg(files[i]);
    ASSERT_EQ(decoded[i].image().shape(), expected.shape());
    expect_near(on_host(decoded[i].image()), expected.data<std::uint8_t>());
  }
  const auto stats = decoder.stats();
  std::printf("engines %llu, other units %llu, CPU %llu\n",
              static_cast<unsigned long long>(stats.hardware),
              static_cast<unsigned long long>(stats.gpu),
              static_cast<unsigned long long>(stats.unsupported + stats.damaged));
  EXPECT_EQ(stats.unsupported, 0u);
  EXPECT_EQ(stats.damaged, 0u);
  const auto of_engines = std::ranges::count_if(all, is_for_engines);
  EXPECT_EQ(stats.hardware, decoder.has_hardware() ? static_cast<std::uint64_t>(of_engines) : 0);
}

TEST_P(GpuJpegDecoder, DecodesPartsAsWholeImages) {
  jpeg_decoder decoder(device(0), decode_by_libjpeg, {.hardware = GetParam()});
  const jpeg_encoding how{400, 300, 2, 2, false};
  const auto file = encode_jpeg(how, picture(how, random));
  const jpeg_region part{37, 51, 200, 101};
  std::vector<jpeg_source> sources;
  sources.emplace_back(file);
  sources.emplace_back(file, "part", part);
  const auto decoded = decode(decoder, std::move(sources));
  const auto whole = on_host(decoded[0].image());
  const auto bytes = on_host(decoded[1].image());
  std::vector<std::uint8_t> expected;
  for (int y = part.top; y < part.top + part.height; ++y) {
    const auto* row = whole.data() + (y * how.width + part.left) * 3;
    expected.insert(expected.end(), row, row + part.width * 3);
  }
  ASSERT_EQ(bytes.size(), expected.size());
  expect_near(bytes, expected.data());
}

// What libjpeg says of the damaged images is not looked at: its errors end the program.
TEST_P(GpuJpegDecoder, DecodesIntactImagesBesideDamagedOnes) {
  auto any_image = [](const buffer&) { return tensor(element_type::u8, {4, 6, 3}); };
  jpeg_decoder decoder(device(0), any_image, {.hardware = GetParam()});
  const jpeg_encoding how{320, 240, 2, 2, false};
  const auto file = encode_jpeg(how, picture(how, random));
  for (int round = 0; round < 50; ++round) {
    std::vector<jpeg_source> sources;
    for (int i = 0; i < 8; ++i) {
      buffer damaged(file.size());
      std::memcpy(damaged.data(), file.data(), file.size());
      for (auto changes = random() % 4; i % 2 == 1 && changes > 0; --changes)
        damaged.data()[700 + random() % (file.size() - 702)] = static_cast<std::byte>(random());
      sources.emplace_back(std::move(damaged));
    }
    const auto decoded = decode(decoder, std::move(sources));
    const auto expected = decode_by_libjpeg(file);
    for (std::size_t i = 0; i < 8; i += 2)
      expect_near(on_host(decoded[i].image()), expected.data<std::uint8_t>());
  }
}

INSTANTIATE_TEST_SUITE_P(Engines, GpuJpegDecoder, testing::Values(true));
INSTANTIATE_TEST_SUITE_P(OtherUnits, GpuJpegDecoder, testing::Values(false));

}  // namespace lade::cuda
