// Decodes any bytes in every way: with libFuzzer, or over the files given as arguments.

#include <lade/error.hpp>
#include <lade/media/crop.hpp>
#include <lade/media/image.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>

using namespace lade::media;

static std::array<decode_image, 4> ways_to_decode(std::int64_t max_pixels) {
  const image_options whole{.max_pixels = max_pixels};
  image_options stretched = whole;
  stretched.width = 33;
  stretched.height = 20;
  stretched.strict = false;
  image_options cropped = whole;
  cropped.width = 20;
  cropped.height = 33;
  cropped.fit = image_fit::random_crop;
  cropped.layout = image_layout::chw;
  cropped.type = lade::element_type::f16;
  cropped.fast = true;
  image_options grey = stretched;
  grey.fit = image_fit::centre_crop;
  grey.colour = image_colour::grey;
  return {decode_image(whole), decode_image(stretched), decode_image(cropped), decode_image(grey)};
}

static void read_size(const lade::sample& in, std::int64_t max_pixels) {
  try {
    size_of_image(in, {.max_pixels = max_pixels});
  } catch (const lade::error&) {}
}

// By a crop that was asked for before, which is refused or gives the same pixels.
static void compare_with_crop(const decode_image& decode, const lade::sample& in,
                              const lade::tensor& expected) {
  try {
    const auto made = decode(in, decode.crop_of(in, lade::random(in.data().size())));
    if (made.spec() != expected.spec()) std::abort();
    if (std::memcmp(made.bytes(), expected.bytes(), made.spec().bytes()) != 0) std::abort();
  } catch (const lade::error&) {}
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  lade::buffer bytes(size);
  std::memcpy(bytes.data(), data, size);
  const auto in = lade::sample(std::string("fuzz")).with_data(bytes);
  // Few pixels for each byte: a fuzzer soon makes small files of large images.
  const auto max_pixels = static_cast<std::int64_t>(size) * 16;
  read_size(in, max_pixels);
  for (const auto& decode : ways_to_decode(max_pixels)) {
    try {
      compare_with_crop(decode, in, decode(in, lade::random(size)));
    } catch (const lade::error&) {}
  }
  return 0;
}
