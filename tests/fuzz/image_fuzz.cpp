// Decodes any bytes in every way: with libFuzzer, or over the files given as arguments.

#include <lade/error.hpp>
#include <lade/media/image.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace lade;
  using namespace lade::media;
  constexpr std::int64_t max_pixels = 1 << 21;
  static const decode_image ways[] = {
      decode_image({.max_pixels = max_pixels}),
      decode_image({.width = 33, .height = 20, .strict = false, .max_pixels = max_pixels}),
      decode_image({.width = 20,
                    .height = 33,
                    .fit = image_fit::random_crop,
                    .layout = image_layout::chw,
                    .type = element_type::f16,
                    .fast = true,
                    .max_pixels = max_pixels}),
      decode_image({.width = 24,
                    .height = 24,
                    .fit = image_fit::centre_crop,
                    .colour = image_colour::grey,
                    .strict = false,
                    .max_pixels = max_pixels}),
  };
  buffer bytes(size);
  if (size > 0) std::memcpy(bytes.data(), data, size);
  const auto in = sample(std::string("fuzz")).with_data(bytes);
  for (const auto& decode : ways) {
    try {
      decode(in, lade::random(size));
    } catch (const error&) {}
  }
  return 0;
}
