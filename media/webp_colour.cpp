#include "webp_colour.hpp"

#include <algorithm>

namespace lade::media {

static std::uint8_t webp_clamp(int value) {
  return static_cast<std::uint8_t>(std::clamp(value >> 6, 0, 255));
}

static void webp_pixel(int y, int u, int v, std::uint8_t* rgb) {
  const auto scaled = [](int value, int factor) { return (value * factor) >> 8; };
  const int luma = scaled(y, 19077);
  rgb[0] = webp_clamp(luma + scaled(v, 26149) - 14234);
  rgb[1] = webp_clamp(luma - scaled(u, 6419) - scaled(v, 13320) + 8708);
  rgb[2] = webp_clamp(luma + scaled(u, 33050) - 17685);
}

// Sample x of the row of colour that is twice as long as `near`, the closer of the two rows that
// it lies between. Weights are 9, 3, 3 and 1 sixteenths, rounded in two steps.
static int webp_upsampled(const std::uint8_t* near, const std::uint8_t* far, int x, int width) {
  const int right = (x + 1) / 2;
  if (x == 0 || (x == width - 1 && x % 2 != 0)) {
    const int only = x / 2;
    return (3 * near[only] + far[only] + 2) >> 2;
  }
  const int left = right - 1;
  const int closest = x % 2 != 0 ? left : right;
  const int other = x % 2 != 0 ? right : left;
  const int all = near[left] + near[right] + far[left] + far[right] + 8;
  return (((all + 2 * (near[other] + far[closest])) >> 3) + near[closest]) >> 1;
}

void webp_row_to_rgb(const AVFrame& frame, int y, std::uint8_t* out) {
  const int last = (frame.height + 1) / 2 - 1;
  const int closer = y / 2;
  const int further = std::clamp(y % 2 != 0 ? closer + 1 : closer - 1, 0, last);
  const auto row = [&](int plane, int at) {
    return frame.data[plane] + std::ptrdiff_t{at} * frame.linesize[plane];
  };
  for (int x = 0; x < frame.width; ++x)
    webp_pixel(row(0, y)[x], webp_upsampled(row(1, closer), row(1, further), x, frame.width),
               webp_upsampled(row(2, closer), row(2, further), x, frame.width), out + 3 * x);
}

}  // namespace lade::media
