#include "tiff_page.hpp"

#include <lade/buffer_pool.hpp>
#include <lade/support/tiff_tags.hpp>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <new>
#include <span>
#include <string_view>
#include <vector>

#include <fmt/format.h>

namespace lade::media {

tmsize_t tiff_page::read(thandle_t handle, void* out, tmsize_t count) {
  auto& from = *static_cast<memory*>(handle);
  const auto size = from.bytes.size();
  const auto rest = from.at < size ? size - from.at : 0;
  const auto taken = std::min(static_cast<std::size_t>(count), rest);
  if (taken > 0) std::memcpy(out, from.bytes.data() + from.at, taken);
  from.at += taken;
  return static_cast<tmsize_t>(taken);
}

toff_t tiff_page::seek(thandle_t handle, toff_t offset, int from) {
  auto& self = *static_cast<memory*>(handle);
  const auto base = from == SEEK_CUR ? self.at : from == SEEK_END ? self.bytes.size() : 0;
  return self.at = base + offset;
}

toff_t tiff_page::size(thandle_t handle) { return static_cast<memory*>(handle)->bytes.size(); }

int tiff_page::map(thandle_t handle, void** base, toff_t* size) {
  const auto& bytes = static_cast<memory*>(handle)->bytes;
  *base = const_cast<std::uint8_t*>(bytes.data());  // libtiff only reads it
  *size = bytes.size();
  return 1;
}

// Keeps the first message. Returns 1, so that libtiff does not print it. Some messages begin with
// the name of the file, which is empty.
static int tiff_keep(std::array<char, 256>& into, const char* format, std::va_list arguments) {
  if (into[0] != '\0') return 1;
  std::vsnprintf(into.data(), into.size(), format, arguments);
  const std::string_view text(into.data());
  if (text.starts_with(": ")) std::memmove(into.data(), into.data() + 2, text.size() - 1);
  return 1;
}

int tiff_page::on_error(TIFF*, void* self, const char*, const char* format,
                        std::va_list arguments) {
  return tiff_keep(static_cast<messages*>(self)->error, format, arguments);
}

int tiff_page::on_warning(TIFF*, void* self, const char*, const char* format,
                          std::va_list arguments) {
  return tiff_keep(static_cast<messages*>(self)->warning, format, arguments);
}

void tiff_page::unsupported(const std::string& feature) const {
  throw error(errc::unsupported, file_.doing, "a TIFF with " + feature);
}

void tiff_page::damaged() const { throw_damaged(file_, "TIFF", messages_.error.data()); }

tiff_page::tiff_page(const image_file& file) : file_(file), memory_{file.bytes} {
  // Checked first: libtiff replaces unreadable values by defaults, and copies the values of all
  // tags.
  if (const auto fault = lade::support::tiff_tags(file.bytes).fault(); !fault.empty())
    throw_damaged(file, "TIFF", fault);
  open();
  layout_.width = field<std::uint32_t>(TIFFTAG_IMAGEWIDTH);
  layout_.height = field<std::uint32_t>(TIFFTAG_IMAGELENGTH);
}

void tiff_page::open() {
  const std::unique_ptr<TIFFOpenOptions, decltype(&TIFFOpenOptionsFree)> options(
      TIFFOpenOptionsAlloc(), TIFFOpenOptionsFree);
  if (options == nullptr) throw std::bad_alloc();
  TIFFOpenOptionsSetErrorHandlerExtR(options.get(), on_error, &messages_);
  TIFFOpenOptionsSetWarningHandlerExtR(options.get(), on_warning, &messages_);
  // The limit: four samples of 16 bits per pixel, and the tables of the directory.
  const auto most = 8 * std::min(file_.max_pixels, std::int64_t{1} << 40) + (1 << 20);
  TIFFOpenOptionsSetMaxSingleMemAlloc(options.get(), most);
  tiff_.reset(TIFFClientOpenExt("", "r", &memory_, read, write, seek, close_nothing, size, map,
                                unmap, options.get()));
  if (tiff_ == nullptr) damaged();
  // libtiff skips a tag if it cannot allocate memory for it.
  if (std::string_view(messages_.error.data()).starts_with("Failed to allocate"))
    throw std::bad_alloc();
}

void tiff_page::read_layout() {
  read_compression();
  read_samples();
  read_colours();
  read_alpha();
  read_blocks();
  check_block_memory();
}

void tiff_page::read_compression() {
  const auto scheme = field<std::uint16_t>(TIFFTAG_COMPRESSION);
  if (scheme == COMPRESSION_OJPEG)
    unsupported("old-style JPEG compression; `tiffcp -c jpeg` or ImageMagick rewrite it");
  if (TIFFIsCODECConfigured(scheme) != 0) return;
  const auto* codec = TIFFFindCODEC(scheme);
  unsupported(fmt::format("compression {}, which this libtiff does not have",
                          codec != nullptr ? codec->name : std::to_string(scheme)));
}

void tiff_page::read_samples() {
  layout_.bits = field<std::uint16_t>(TIFFTAG_BITSPERSAMPLE);
  layout_.samples = field<std::uint16_t>(TIFFTAG_SAMPLESPERPIXEL);
  layout_.planar = field<std::uint16_t>(TIFFTAG_PLANARCONFIG) == PLANARCONFIG_SEPARATE;
  const auto format = field<std::uint16_t>(TIFFTAG_SAMPLEFORMAT);
  if (format == SAMPLEFORMAT_INT) unsupported("signed samples");
  if (format == SAMPLEFORMAT_IEEEFP) unsupported("floating-point samples");
  if (format != SAMPLEFORMAT_UINT && format != SAMPLEFORMAT_VOID) unsupported("complex samples");
  if (layout_.bits < 1 || layout_.bits > 16)
    unsupported(fmt::format("samples of {} bits", layout_.bits));
}

void tiff_page::read_colours() {
  using colours = tiff_layout::colours;
  std::uint16_t photometric = 0;
  if (TIFFGetField(tiff_.get(), TIFFTAG_PHOTOMETRIC, &photometric) == 0)
    photometric = layout_.samples >= 3 ? PHOTOMETRIC_RGB : PHOTOMETRIC_MINISBLACK;
  switch (photometric) {
    case PHOTOMETRIC_MINISWHITE: layout_.kind = colours::inverted_grey; break;
    case PHOTOMETRIC_MINISBLACK: layout_.kind = colours::grey; break;
    case PHOTOMETRIC_RGB: layout_.kind = colours::rgb; break;
    case PHOTOMETRIC_PALETTE: read_palette(); break;
    case PHOTOMETRIC_SEPARATED: layout_.kind = colours::inks; break;
    case PHOTOMETRIC_YCBCR: read_ycbcr(); break;
    default: unsupported(fmt::format("the photometric interpretation {}", photometric));
  }
  if (layout_.kind == colours::inks && field<std::uint16_t>(TIFFTAG_INKSET) != INKSET_CMYK)
    unsupported("inks other than CMYK");
  if (layout_.samples < layout_.colours_of_pixel())
    unsupported(fmt::format("too few samples for each pixel: {}", layout_.samples));
}

// With JPEG compression, libjpeg converts YCbCr to RGB.
void tiff_page::read_ycbcr() {
  if (layout_.bits != 8 || layout_.samples != 3)
    unsupported("YCbCr that is not three samples of 8 bits");
  const bool jpeg = field<std::uint16_t>(TIFFTAG_COMPRESSION) == COMPRESSION_JPEG;
  layout_.kind = tiff_layout::colours::converted;
  if (!jpeg || layout_.planar) return;
  TIFFSetField(tiff_.get(), TIFFTAG_JPEGCOLORMODE, JPEGCOLORMODE_RGB);
  layout_.kind = tiff_layout::colours::rgb;
}

// libtiff returns a tag without values if it could not allocate memory for them.
static void require_copied(const std::uint16_t* values) {
  if (values == nullptr) throw std::bad_alloc();
}

void tiff_page::read_palette() {
  auto& map = layout_.map;
  if (TIFFGetField(tiff_.get(), TIFFTAG_COLORMAP, &map[0], &map[1], &map[2]) == 0)
    throw_damaged(file_, "TIFF", "it has no palette");
  for (const auto* colours : map) require_copied(colours);
  layout_.kind = tiff_layout::colours::palette;
  // Some writers store 8-bit colours in the lower half of the 16 bits.
  const auto count = std::size_t{1} << layout_.bits;
  const bool low = std::ranges::all_of(map, [&](const std::uint16_t* colours) {
    return std::all_of(colours, colours + count, [](std::uint16_t value) { return value < 256; });
  });
  layout_.map_shift = low ? 0 : 8;
}

void tiff_page::read_alpha() {
  std::uint16_t count = 0;
  std::uint16_t* kinds = nullptr;
  TIFFGetField(tiff_.get(), TIFFTAG_EXTRASAMPLES, &count, &kinds);
  if (count > 0) require_copied(kinds);
  layout_.premultiplied = count > 0 && kinds[0] == EXTRASAMPLE_ASSOCALPHA &&
                          layout_.samples > layout_.colours_of_pixel() &&
                          layout_.kind != tiff_layout::colours::palette;
}

void tiff_page::read_blocks() {
  layout_.tiled = TIFFIsTiled(tiff_.get()) != 0;
  if (layout_.tiled) {
    layout_.block_width = field<std::uint32_t>(TIFFTAG_TILEWIDTH);
    layout_.block_height = field<std::uint32_t>(TIFFTAG_TILELENGTH);
    layout_.block_stride = TIFFTileRowSize64(tiff_.get());
  } else {
    layout_.block_width = layout_.width;
    layout_.block_height = std::min(field<std::uint32_t>(TIFFTAG_ROWSPERSTRIP), layout_.height);
    layout_.block_stride = TIFFScanlineSize64(tiff_.get());
  }
  if (layout_.block_width == 0 || layout_.block_height == 0 || layout_.block_stride == 0) damaged();
}

// A tile may be larger than its image, and a pixel may have any number of samples.
void tiff_page::check_block_memory() const {
  const auto bytes = static_cast<double>(layout_.block_stride) * layout_.block_height *
                     static_cast<double>(layout_.planes());
  if (bytes <= 8 * static_cast<double>(file_.max_pixels)) return;
  throw error(
      errc::limit_exceeded, file_.doing,
      fmt::format("blocks of {} x {} pixels with {} samples need more than 8 bytes for each of "
                  "max_pixels = {}",
                  layout_.block_width, layout_.block_height, layout_.samples, file_.max_pixels));
}

void tiff_page::read_block(std::uint32_t x, std::uint32_t y, std::uint16_t plane,
                           std::uint8_t* out) {
  messages_ = {};
  auto* tiff = tiff_.get();
  const auto rows =
      layout_.tiled ? layout_.block_height : std::min(layout_.block_height, layout_.height - y);
  const auto bytes = static_cast<tmsize_t>(layout_.block_stride * rows);
  // With libdeflate, libtiff reports success for a damaged block whose last bytes were not written.
  std::memset(out, 0, static_cast<std::size_t>(bytes));
  const auto read =
      layout_.tiled ? TIFFReadEncodedTile(tiff, TIFFComputeTile(tiff, x, y, 0, plane), out, bytes)
                    : TIFFReadEncodedStrip(tiff, TIFFComputeStrip(tiff, y, plane), out, bytes);
  if (read != bytes) damaged();
  check_warning();
}

// Throws if libtiff has warned. While it reads pixels, it warns about gaps that it has filled, and
// about an old kind of LZW, which is harmless.
void tiff_page::check_warning() const {
  const std::string_view warning(messages_.warning.data());
  if (warning.empty() || warning.starts_with("Old-style LZW")) return;
  throw_damaged(file_, "TIFF", warning);
}

void tiff_page::read_converted(std::uint8_t* rgb) {
  messages_ = {};
  const float* levels = nullptr;  // libtiff allocates it here if the file has none, and does not
                                  // check later
  if (TIFFGetFieldDefaulted(tiff_.get(), TIFFTAG_REFERENCEBLACKWHITE, &levels) == 0)
    throw std::bad_alloc();
  TIFFRGBAImage image;
  std::array<char, 1024> message{};
  if (TIFFRGBAImageBegin(&image, tiff_.get(), 1, message.data()) == 0)
    unsupported(std::string("YCbCr that libtiff cannot convert: ") + message.data());
  const std::unique_ptr<TIFFRGBAImage, decltype(&TIFFRGBAImageEnd)> end(&image, TIFFRGBAImageEnd);
  image.req_orientation = image.orientation;  // rows as stored
  const auto pixels = std::size_t{layout_.width} * layout_.height;
  const auto held = allocate_now(pixels * sizeof(std::uint32_t));
  const std::span raster(reinterpret_cast<std::uint32_t*>(held.data()), pixels);
  std::ranges::fill(raster, 0U);
  const bool read = TIFFRGBAImageGet(&image, raster.data(), layout_.width, layout_.height) != 0;
  if (!read || messages_.error[0] != '\0') damaged();
  check_warning();
  for (const auto pixel : raster) {
    *rgb++ = static_cast<std::uint8_t>(TIFFGetR(pixel));
    *rgb++ = static_cast<std::uint8_t>(TIFFGetG(pixel));
    *rgb++ = static_cast<std::uint8_t>(TIFFGetB(pixel));
  }
}

}  // namespace lade::media
