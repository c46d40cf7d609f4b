// Decodes any bytes as a mask: with libFuzzer, or over the files given as arguments. The same bytes
// are the image, so that the sizes agree where the header can be read.

#include <lade/error.hpp>
#include <lade/media/crop.hpp>
#include <lade/media/mask.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>

using namespace lade::media;

static std::optional<lade::tensor> decoded(const lade::sample& in, const image_options& how,
                                           lade::element_type type) {
  try {
    return decode_mask(how, {.field = "mask", .type = type})(in, lade::random(1));
  } catch (const lade::error&) {
    return std::nullopt;
  }
}

// A wide type has the values of u8, and takes every mask that u8 takes.
static void compare(const lade::tensor& narrow, const std::optional<lade::tensor>& wide) {
  if (!wide || wide->shape() != narrow.shape()) std::abort();
  for (std::size_t i = 0; i < narrow.spec().elements(); ++i)
    if (narrow.data<std::uint8_t>()[i] != wide->data<std::int32_t>()[i]) std::abort();
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  lade::buffer bytes(size);
  std::memcpy(bytes.data(), data, size);
  const auto in =
      lade::sample(std::string("fuzz")).with_fields({{"image", bytes}, {"mask", bytes}});
  // Few pixels for each byte: a fuzzer soon makes small files of large images.
  const image_options whole{.field = "image", .max_pixels = static_cast<std::int64_t>(size) * 16};
  auto cropped = whole;
  cropped.width = 20;
  cropped.height = 33;
  cropped.fit = image_fit::random_crop;
  for (const auto& how : {whole, cropped}) {
    const auto narrow = decoded(in, how, lade::element_type::u8);
    const auto wide = decoded(in, how, lade::element_type::i32);
    if (narrow) compare(*narrow, wide);
  }
  return 0;
}
