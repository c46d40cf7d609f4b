#include "avif_reader.hpp"

#include "av1_header.hpp"
#include "avif_items.hpp"
#include "freed_memory.hpp"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <new>
#include <string>

#include <avif/avif.h>

namespace lade::media {

bool avif_reader::recognises(support::byte_view file) noexcept {
  const avifROData data{file.data(), file.size()};
  return file.from(4).begins("ftyp") && avifPeekCompatibleFileType(&data) != 0;
}

// The field's name depends on the version of libavif.
template <class Mirror>
static int avif_mirror(const Mirror& mirror) {
  if constexpr (requires { mirror.axis; })
    return mirror.axis;
  else
    return mirror.mode;
}

// The Exif orientation of an image that is rotated anticlockwise, then mirrored.
static int avif_orientation(const avifImage& image) {
  // Index: quarter turns. Rows: not mirrored; top and bottom exchanged; left and right exchanged.
  static constexpr int orientations[3][4] = {{1, 8, 3, 6}, {4, 5, 2, 7}, {2, 7, 4, 5}};
  const bool turned = (image.transformFlags & AVIF_TRANSFORM_IROT) != 0;
  const bool mirrored = (image.transformFlags & AVIF_TRANSFORM_IMIR) != 0;
  const int quarters = turned ? image.irot.angle & 3 : 0;
  return orientations[mirrored ? 1 + (avif_mirror(image.imir) & 1) : 0][quarters];
}

// The clean aperture: the part of the stored image to show.
static avifCropRect avif_aperture(const avifImage& image, const image_file& file) {
  avifCropRect part{0, 0, image.width, image.height};
  avifDiagnostics diagnostics{};
  if ((image.transformFlags & AVIF_TRANSFORM_CLAP) != 0 &&
      avifCropRectConvertCleanApertureBox(&part, &image.clap, image.width, image.height,
                                          image.yuvFormat, &diagnostics) == 0)
    throw_damaged(file, "AVIF", "its clean aperture lies outside of it");
  return part;
}

static void check_avif(avifResult result, const avifDecoder& decoder, const image_file& file) {
  if (result == AVIF_RESULT_OK) return;
  if (result == AVIF_RESULT_OUT_OF_MEMORY) throw std::bad_alloc();
  throw_damaged(file, "AVIF",
                decoder.diag.error[0] != '\0' ? decoder.diag.error : avifResultToString(result));
}

// Selects a decoder that prints nothing. dav1d prints messages about damaged data before libavif
// 1.4, which collects them in avifDiagnostics. Earlier versions use libaom, which is slower.
static avifCodecChoice silent_avif_codec() noexcept {
  int major = 0;
  int minor = 0;
  const bool known = std::sscanf(avifVersion(), "%d.%d", &major, &minor) == 2;
  const bool silent = known && (major > 1 || (major == 1 && minor >= 4));
  const bool has_other =
      avifCodecName(AVIF_CODEC_CHOICE_AOM, AVIF_CODEC_FLAG_CAN_DECODE) != nullptr;
  return silent || !has_other ? AVIF_CODEC_CHOICE_AUTO : AVIF_CODEC_CHOICE_AOM;
}

// The size of a file that libavif refuses, possibly because of its size.
static void find_avif_size(const image_file& file, std::int64_t& width, std::int64_t& height) {
  const support::byte_view bytes(file.bytes);
  const auto at = bytes.text().find("ispe");
  if (at == std::string_view::npos) return;
  width = static_cast<std::int64_t>(bytes.big(at + 8, 4));
  height = static_cast<std::int64_t>(bytes.big(at + 12, 4));
}

// The file as libavif's input. In a sequence, it parses the headers of each sample before a decoder
// receives it: only libavif locates samples.
struct avif_reader::samples {
  explicit samples(const image_file& file)
      : bytes(file.bytes), max_pixels(static_cast<std::uint64_t>(file.max_pixels)) {
    io.read = read;
    io.sizeHint = bytes.size();
    io.persistent = AVIF_TRUE;
    io.data = this;
  }
  samples(const samples&) = delete;
  samples& operator=(const samples&) = delete;

  bool may_be_decoded() const noexcept {
    return sizes.largest().pixels() <= max_pixels && !sizes.has_too_many_obus();
  }

  static avifResult read(avifIO* io, std::uint32_t flags, std::uint64_t offset, std::size_t size,
                         avifROData* out) noexcept {
    auto& from = *static_cast<samples*>(io->data);
    if (flags != 0 || offset > from.bytes.size()) return AVIF_RESULT_IO_ERROR;
    const auto rest = from.bytes.from(offset);
    const auto part = rest.part(0, std::min(size, rest.size()));
    *out = {part.data(), part.size()};
    if (!from.of_sequence) return AVIF_RESULT_OK;
    from.sizes.add(part);
    from.sizes.end_sample();
    return from.may_be_decoded() ? AVIF_RESULT_OK : AVIF_RESULT_IO_ERROR;
  }

  support::byte_view bytes;
  std::uint64_t max_pixels;
  av1_sizes sizes{std::max<std::uint64_t>(bytes.size(), 64)};
  bool of_sequence = false;  // whether reads are of samples
  avifIO io{};
};

using avif_decoder = std::unique_ptr<avifDecoder, decltype(&avifDecoderDestroy)>;

static avif_decoder new_avif_decoder() {
  avif_decoder decoder(avifDecoderCreate(), avifDecoderDestroy);
  if (decoder == nullptr) throw std::bad_alloc();
  return decoder;
}

void avif_reader::open(const image_file& file) {
  samples from(file);  // must outlive the decoder
  const auto decoder = new_avif_decoder();
  prepare(*decoder, from, file);
  check_samples(*decoder, from, file);
  const auto result = avifDecoderNextImage(decoder.get());
  check_size(from, file);
  check_avif(result, *decoder, file);
  orientation_ = avif_orientation(*decoder->image);
  convert(*decoder->image, file);
}

void avif_reader::read_header(const image_file& file) {
  samples from(file);
  const auto decoder = new_avif_decoder();
  prepare(*decoder, from, file);
  orientation_ = avif_orientation(*decoder->image);
  const auto part = avif_aperture(*decoder->image, file);
  set_shape(file, part.width, part.height, false);
}

void avif_reader::prepare(avifDecoder& decoder, samples& from, const image_file& file) {
  decoder.codecChoice = silent_avif_codec();
  decoder.maxThreads = 1;
  decoder.ignoreExif = AVIF_TRUE;
  decoder.ignoreXMP = AVIF_TRUE;
  decoder.imageCountLimit = static_cast<std::uint32_t>(  // an image has at least one byte
      std::clamp<std::size_t>(file.bytes.size(), 1, AVIF_DEFAULT_IMAGE_COUNT_LIMIT));
  decoder.imageDimensionLimit = 0;                        // set_shape checks it and reports the
                                                          // size
  decoder.strictFlags = AVIF_STRICT_ALPHA_ISPE_REQUIRED;  // many files lack a pixi property
  avifDecoderSetIO(&decoder, &from.io);
  parse(decoder, file);
}

// The planes and the decoder's working memory are allocated by malloc, not from the run.
void avif_reader::close() noexcept {
  rgba_.end_image();
  frame_reader::close();
  if (is_large()) detail::give_back_freed(10 * std::size_t(width()) * std::size_t(height()));
}

void avif_reader::parse(avifDecoder& decoder, const image_file& file) {
  if (avif_has_empty_extents(file.bytes)) throw_damaged(file, "AVIF", "its items have no length");
  if (avif_has_too_many_chunks(file.bytes))
    throw_damaged(file, "AVIF", "its samples are in too many chunks");
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

// Refuses frames that are larger than the boxes state. Items are located by the boxes. Samples of a
// sequence are checked as libavif reads them; so it is reset to read them again. Frames larger than
// their sequence header are refused by libaom, and by dav1d if they exceed the limit.
void avif_reader::check_samples(avifDecoder& decoder, samples& from, const image_file& file) {
  decoder.imageSizeLimit = static_cast<std::uint32_t>(
      std::clamp<std::int64_t>(file.max_pixels, 1, decoder.imageSizeLimit));
  add_avif_items(from.bytes, from.sizes);
  check_size(from, file);
  from.of_sequence = avif_has_tracks(from.bytes);
  const auto result = from.of_sequence ? avifDecoderReset(&decoder) : AVIF_RESULT_OK;
  check_size(from, file);
  check_avif(result, decoder, file);
}

void avif_reader::check_size(const samples& from, const image_file& file) {
  const auto size = from.sizes.largest();
  if (size.pixels() > 0) set_shape(file, size.width, size.height, false);
  if (from.sizes.has_too_many_obus()) throw_damaged(file, "AVIF", "its items share too many data");
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
