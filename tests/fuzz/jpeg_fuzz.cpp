// Decodes any bytes by lade's own decoder of JPEG: alone and together with an image that is valid.
// Each gives the samples of libjpeg-turbo, which must not have warned, or is refused.

#include "../media/jpeg_oracle.hpp"
#include "../media/jpeg_writer.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

using namespace lade::media;

static void require_that(bool right) {
  if (!right) std::abort();
}

struct valid_jpeg {
  lade::buffer bytes;
  libjpeg_planes planes;
};

static valid_jpeg make_partner() {
  lade::tensor pixels(lade::element_type::u8, {50, 70, 3});
  auto* value = pixels.data<std::uint8_t>();
  for (int i = 0; i < 50 * 70 * 3; ++i) value[i] = static_cast<std::uint8_t>(i * i / 7);
  valid_jpeg made{.bytes = write_jpeg(pixels, {.restart_interval = 3}), .planes = {}};
  require_that(read_libjpeg_planes(made.bytes.bytes(), made.planes));
  return made;
}

static bool is_small(const jpeg_image& image) {
  return std::int64_t{image.headers().width} * image.headers().height <= 1 << 18;
}

static void decode_at(simd level, std::span<const std::byte> file, const valid_jpeg& partner) {
  jpeg_table_cache tables;
  jpeg_image alone(level);
  if (!alone.open(file, tables) || !is_small(alone)) return;
  alone.begin(whole_of(alone), all_rows);
  libjpeg_planes planes;
  const bool valid = alone.decode(alone.headers().height - 1, nullptr);
  if (valid) {
    require_that(read_libjpeg_planes(file, planes));
    require_that(has_planes_of(alone, planes));
  }
  jpeg_image paired(level), other(level);
  require_that(paired.open(file, tables) && other.open(partner.bytes.bytes(), tables));
  paired.begin(whole_of(paired), all_rows);
  other.begin(whole_of(other), all_rows);
  require_that(paired.decode(paired.headers().height - 1, &other) == valid);
  if (valid) require_that(has_planes_of(paired, planes));
  require_that(other.decode(other.headers().height - 1, nullptr));
  require_that(has_planes_of(other, partner.planes));
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const valid_jpeg partner = make_partner();
  const auto file = std::as_bytes(std::span(data, size));
  decode_at(simd::plain, file, partner);
  if (best_simd() >= simd::avx2) decode_at(simd::avx2, file, partner);
  if (best_simd() >= simd::avx512) decode_at(simd::avx512, file, partner);
  return 0;
}
