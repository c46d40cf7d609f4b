// Reads the first page of a TIFF file (TIFF 6.0) with libtiff.

#pragma once

#include "image_reader.hpp"

#include <lade/support/byte_view.hpp>

#include <array>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include <tiffio.h>

namespace lade::media {

// The layout and meaning of a page's samples.
struct tiff_layout {
  enum class colours : std::uint8_t { grey, inverted_grey, palette, rgb, inks, converted };

  colours kind = colours::grey;
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  std::uint16_t bits = 1;
  std::uint16_t samples = 1;
  bool planar = false;
  bool tiled = false;
  bool premultiplied = false;     // colours are premultiplied by the alpha sample after them
  std::uint32_t block_width = 0;  // of a strip or tile, in pixels
  std::uint32_t block_height = 0;
  std::size_t block_stride = 0;         // bytes per row of a block
  std::array<std::uint16_t*, 3> map{};  // red, green and blue of the palette
  int map_shift = 8;

  bool is_grey() const { return kind == colours::grey || kind == colours::inverted_grey; }
  std::size_t colours_of_pixel() const {
    return kind == colours::rgb ? 3 : kind == colours::inks ? 4 : 1;
  }
  std::size_t planes() const { return planar ? samples : 1; }
  std::size_t block_bytes() const { return block_stride * block_height; }
};

// An open file. `file` must outlive it. Functions throw errors of `file`. libtiff prints nothing
// and writes nothing.
class tiff_page {
 public:
  explicit tiff_page(const image_file& file);

  // The constructor sets the size, `read_layout` the rest.
  const tiff_layout& layout() const noexcept { return layout_; }
  void read_layout();

  // Reads the strip or tile with the pixel (x, y) of one plane: layout().block_bytes().
  void read_block(std::uint32_t x, std::uint32_t y, std::uint16_t plane, std::uint8_t* out);

  // Reads all pixels, converted to RGB by libtiff. For layout().kind == converted.
  void read_converted(std::uint8_t* rgb);

 private:
  // The input of libtiff.
  struct memory {
    support::byte_view bytes;
    std::uint64_t at = 0;
  };

  // The first message of each kind.
  struct messages {
    using text = std::array<char, 256>;
    text error{};
    text warning{};
  };

  struct close {
    void operator()(TIFF* tiff) const { TIFFClose(tiff); }
  };

  static tmsize_t read(thandle_t handle, void* out, tmsize_t count);
  static tmsize_t write(thandle_t, void*, tmsize_t) { return -1; }
  static toff_t seek(thandle_t handle, toff_t offset, int from);
  static toff_t size(thandle_t handle);
  static int map(thandle_t handle, void** base, toff_t* size);
  static void unmap(thandle_t, void*, toff_t) {}
  static int close_nothing(thandle_t) { return 0; }
  static int on_error(TIFF*, void* self, const char*, const char* format, std::va_list arguments);
  static int on_warning(TIFF*, void* self, const char*, const char* format, std::va_list arguments);

  template <class T>
  T field(std::uint32_t tag) const {
    T value{};
    TIFFGetFieldDefaulted(tiff_.get(), tag, &value);
    return value;
  }
  [[noreturn]] void unsupported(const std::string& feature) const;
  [[noreturn]] void damaged() const;

  void open();
  void read_compression();
  void read_samples();
  void read_colours();
  void read_ycbcr();
  void read_palette();
  void read_alpha();
  void read_blocks();
  void check_block_memory() const;
  void check_warning() const;

  const image_file& file_;
  memory memory_;
  messages messages_;
  std::unique_ptr<TIFF, close> tiff_;
  tiff_layout layout_;
};

}  // namespace lade::media
