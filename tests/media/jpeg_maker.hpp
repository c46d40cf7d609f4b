// JPEGs that lade's own decoder takes, made at random.

#pragma once

#include "../../media/jpeg_image.hpp"
#include "jpeg_writer.hpp"

#include <lade/random.hpp>

#include <cstdint>
#include <cstdlib>
#include <vector>

namespace lade::media {

// How many files are made: more are worth it before a release.
inline int jpeg_files() {
  const auto* given = std::getenv("LADE_JPEG_FILES");
  return given != nullptr ? std::atoi(given) : 300;
}

using jpeg_bytes = std::vector<std::byte>;

// Makes files that the decoder takes. LADE_SEED makes the same ones again.
class jpeg_maker {
 public:
  explicit jpeg_maker(std::uint64_t seed) : draw_(seed) {}

  int below(int bound) { return static_cast<int>(draw_.below(static_cast<std::uint64_t>(bound))); }
  bool one_in(int count) { return below(count) == 0; }

  jpeg_bytes file(int largest = 300) {
    const int limit = 1 + below(largest);
    return file(1 + below(limit), 1 + below(limit), kind());
  }

  jpeg_bytes file(int width, int height, const jpeg_kind& kind) {
    const auto written =
        write_jpeg(pixels(width, height, kind.from == JCS_GRAYSCALE ? 1 : 3), kind);
    jpeg_bytes bytes(written.data(), written.data() + written.size());
    for (std::size_t i = 0; one_in(4) && i + 1 < bytes.size(); ++i)
      if (bytes[i] == std::byte{0xff} && bytes[i + 1] == std::byte{0xc0}) {
        bytes[i + 1] = std::byte{0xc1};  // extended sequential: the same for 8 bits
        break;
      }
    return bytes;
  }

  jpeg_part part(int width, int height) {
    jpeg_part made{.left = below(width), .top = below(height)};
    made.right = made.left + 1 + below(width - made.left);
    made.bottom = made.top + 1 + below(height - made.top);
    return made;
  }

 private:
  jpeg_kind kind() {
    struct sampling {
      int x, y;
    };
    constexpr sampling samplings[] = {{1, 1}, {2, 1}, {1, 2}, {2, 2}, {4, 1}};
    const auto [x, y] = samplings[below(5)];
    jpeg_kind made{.quality = 1 + below(100),
                   .sampling_x = x,
                   .sampling_y = y,
                   .restart_rows = one_in(6) ? 1u + unsigned(below(3)) : 0,
                   .restart_interval = one_in(4) ? 1u + unsigned(below(40)) : 0,
                   .optimised = one_in(2),
                   .jfif = !one_in(4),
                   .adobe = !one_in(4)};
    const int colours = below(8);
    if (colours == 0) made.from = made.as = JCS_GRAYSCALE;
    if (colours == 1) made.as = JCS_RGB;
    return made;
  }

  tensor pixels(int width, int height, int channels) {
    tensor made(element_type::u8, {height, width, channels});
    auto* value = made.data<std::uint8_t>();
    const int noise = 1 << below(9), slope = below(8), edge = 2 + below(60);
    for (int y = 0; y < height; ++y)
      for (int x = 0; x < width; ++x)
        for (int c = 0; c < channels; ++c) {
          const int base = (x / edge + y / edge) % 2 * 90 * (c + 1) + x * slope + y;
          *value++ = static_cast<std::uint8_t>(base + below(noise));
        }
    return made;
  }

  random draw_;
};

inline std::vector<simd> levels_here() {
  std::vector<simd> levels{simd::plain};
  if (best_simd() >= simd::avx2) levels.push_back(simd::avx2);
  if (best_simd() >= simd::avx512) levels.push_back(simd::avx512);
  return levels;
}

}  // namespace lade::media
