#include "avif_reader.hpp"

#include <algorithm>
#include <memory>
#include <new>
#include <string>

#include <avif/avif.h>

namespace lade::media {

bool avif_reader::recognises(byte_view file) noexcept {
  const avifROData data{file.data(), file.size()};
  return file.from(4).begins("ftyp") && avifPeekCompatibleFileType(&data) != 0;
}

// libavif has renamed the field.
template <class Mirror>
static int avif_mirror(const Mirror& mirror) {
  if constexpr (requires { mirror.axis; })
    return mirror.axis;
  else
    return mirror.mode;
}

// The Exif orientation of an image that is rotated to the left, then mirrored.
static int avif_orientation(const avifImage& image) {
  // By quarters of a turn: unmirrored, top and bottom exchanged, left and right exchanged.
  static constexpr int orientations[3][4] = {{1, 8, 3, 6}, {4, 5, 2, 7}, {2, 7, 4, 5}};
  const bool turned = (image.transformFlags & AVIF_TRANSFORM_IROT) != 0;
  const bool mirrored = (image.transformFlags & AVIF_TRANSFORM_IMIR) != 0;
  const int quarters = turned ? image.irot.angle & 3 : 0;
  return orientations[mirrored ? 1 + (avif_mirror(image.imir) & 1) : 0][quarters];
}

// The part of the stored image that is meant to be seen.
static avifCropRect avif_aperture(const avifImage& image, const image_file& file) {
  avifCropRect part{0, 0, image.width, image.height};
  avifDiagnostics why{};
  if ((image.transformFlags & AVIF_TRANSFORM_CLAP) != 0 &&
      avifCropRectConvertCleanApertureBox(&part, &image.clap, image.width, image.height,
                                          image.yuvFormat, &why) == 0)
    throw_damaged(file, "AVIF", "its clean aperture lies outside of it");
  return part;
}

static void check_avif(avifResult result, const avifDecoder& decoder, const image_file& file) {
  if (result == AVIF_RESULT_OK) return;
  if (result == AVIF_RESULT_OUT_OF_MEMORY) throw std::bad_alloc();
  throw_damaged(file, "AVIF",
                decoder.diag.error[0] != '\0' ? decoder.diag.error : avifResultToString(result));
}

// The size that a file names which libavif refuses, maybe for its size.
static void find_avif_size(const image_file& file, std::int64_t& width, std::int64_t& height) {
  const byte_view bytes(file.bytes);
  const auto at = bytes.text().find("ispe");
  if (at == std::string_view::npos) return;
  width = static_cast<std::int64_t>(bytes.big(at + 8, 4));
  height = static_cast<std::int64_t>(bytes.big(at + 12, 4));
}

void avif_reader::open(const image_file& file) {
  const std::unique_ptr<avifDecoder, decltype(&avifDecoderDestroy)> decoder(avifDecoderCreate(),
                                                                            avifDecoderDestroy);
  if (decoder == nullptr) throw std::bad_alloc();
  decoder->maxThreads = 1;
  decoder->ignoreExif = AVIF_TRUE;
  decoder->ignoreXMP = AVIF_TRUE;
  decoder->imageDimensionLimit = 0;                        // set_shape names the size
  decoder->strictFlags = AVIF_STRICT_ALPHA_ISPE_REQUIRED;  // many files lack a pixi property
  parse(*decoder, file);
  check_avif(avifDecoderNextImage(decoder.get()), *decoder, file);
  orientation_ = avif_orientation(*decoder->image);
  convert(*decoder->image, file);
}

void avif_reader::parse(avifDecoder& decoder, const image_file& file) {
  const byte_view bytes(file.bytes);
  check_avif(avifDecoderSetIOMemory(&decoder, bytes.data(), bytes.size()), decoder, file);
  const auto result = avifDecoderParse(&decoder);
  std::int64_t width = 0;
  std::int64_t height = 0;
  if (result != AVIF_RESULT_OK) {
    find_avif_size(file, width, height);
  } else {
    width = decoder.image->width;
    height = decoder.image->height;
  }
  if (width > 0 && height > 0) set_shape(file, width, height, false);
  check_avif(result, decoder, file);
}

void avif_reader::convert(const avifImage& image, const image_file& file) {
  set_shape(file, image.width, image.height, false);  // the pixels may differ from the header
  avifRGBImage rgb;
  avifRGBImageSetDefaults(&rgb, &image);
  const bool alpha = image.alphaPlane != nullptr;  // RGB without it would be multiplied by it
  rgb.format = alpha ? AVIF_RGB_FORMAT_RGBA : AVIF_RGB_FORMAT_RGB;
  rgb.depth = 8;
  rgb.rowBytes = image.width * (alpha ? 4 : 3);
  auto* frame = make_frame();
  rgb.pixels = alpha ? rgba_.reserve(std::size_t{rgb.rowBytes} * image.height) : frame;
  if (avifImageYUVToRGB(&image, &rgb) != AVIF_RESULT_OK)
    throw error(errc::unsupported, file.doing, "an AVIF with colours that libavif cannot convert");
  if (alpha)
    for (std::size_t i = 0; i < std::size_t{image.width} * image.height; ++i)
      std::copy_n(rgb.pixels + 4 * i, 3, frame + 3 * i);
  const auto part = avif_aperture(image, file);
  const auto stride = frame_stride();
  set_shape(file, part.width, part.height, false);
  show_frame(frame + part.y * stride + 3 * part.x, static_cast<std::ptrdiff_t>(stride));
}

}  // namespace lade::media
