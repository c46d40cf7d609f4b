// Pictures and samples for the tests of encoders, and what becomes of them.

#pragma once

#include "../../support/seed.hpp"
#include "media_files.hpp"

#include <lade/media/av/decoder.hpp>
#include <lade/media/av/demuxer.hpp>
#include <lade/media/av/encoder.hpp>
#include <lade/media/av/muxer.hpp>
#include <lade/tensor.hpp>

#include <cmath>
#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <vector>

namespace lade::media {

// Made before the first test, whose allocations are counted.
inline std::span<const media_recipe> all_videos = video_recipes();
inline std::span<const media_recipe> all_sounds = audio_recipes();

// Smooth moving colours, u8 [n, height, width, 3].
inline tensor smooth_pictures(std::int64_t n, std::int64_t height, std::int64_t width) {
  tensor pictures(element_type::u8, {n, height, width, 3});
  auto* out = pictures.data<std::uint8_t>();
  for (std::int64_t t = 0; t < n; ++t)
    for (std::int64_t y = 0; y < height; ++y)
      for (std::int64_t x = 0; x < width; ++x)
        for (int c = 0; c < 3; ++c) {
          const auto phase = 0.05 * static_cast<double>(x + 2 * t) + 0.07 * c +
                             0.03 * static_cast<double>(y * (c + 1));
          *out++ = static_cast<std::uint8_t>(std::lround(127.5 + 100 * std::sin(phase)));
        }
  return pictures;
}

// Random bytes, which no codec compresses.
inline tensor random_pictures(const dimensions& shape, std::uint64_t seed) {
  tensor pictures(element_type::u8, shape);
  std::mt19937_64 random(seed);
  auto* out = pictures.data<std::uint8_t>();
  const auto count = pictures.spec().bytes();
  for (std::size_t i = 0; i < count; ++i) out[i] = static_cast<std::uint8_t>(random() >> 56);
  return pictures;
}

// f32 [n, channels], a multiple of 2^-15 each, of a sweep.
inline tensor sweep(std::int64_t n, std::int64_t channels) {
  tensor samples(element_type::f32, {n, channels});
  auto* out = samples.data<float>();
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t c = 0; c < channels; ++c) {
      const double t = static_cast<double>(i) / 44100;
      const double value = 0.4 * std::sin((600 + 300 * t) * t * 6.28 * static_cast<double>(c + 1));
      *out++ = static_cast<float>(std::lround(value * 0x1p15)) * 0x1p-15F;
    }
  return samples;
}

// Writes one stream of frames or tensors to a file.
template <class Encoder, class Samples>
void write_encoded(const std::string& path, Encoder& encoder, const Samples& samples) {
  muxer file(path);
  const int stream = file.add(encoder.stream());
  encoder.send(samples);
  encoder.finish();
  file.write_ready(stream, encoder);
  file.finish();
}

inline std::vector<frame> frames_of_file(const std::string& path, stream_kind kind) {
  return decode(demux(read_bytes(path), path, kind));
}

// The pictures of a file as the ffmpeg program converts them to RGB, [n, height, width, 3] bytes,
// with chroma at the left of its pixels.
inline std::vector<std::uint8_t> rgb_of_ffmpeg(const std::string& path) {
  const auto text = output_of("ffmpeg -nostdin -v error -i " + path +
                              " -vf scale=in_h_chr_pos=0:in_v_chr_pos=128:flags=bilinear"
                              "+accurate_rnd+full_chroma_int+full_chroma_inp"
                              " -fps_mode passthrough -pix_fmt rgb24 -f rawvideo -");
  return {text.begin(), text.end()};
}

// Peak signal to noise, in decibels.
inline double psnr(const std::uint8_t* a, const std::uint8_t* b, std::size_t n) {
  double sum = 0;
  for (std::size_t i = 0; i < n; ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
  return 10 * std::log10(255.0 * 255.0 * static_cast<double>(n) / std::max(sum, 1e-9));
}

}  // namespace lade::media
