// The interface of the readers of all image formats.

#pragma once

#include "resizer.hpp"

#include <lade/error.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace lade::media {

// An image file to read. All members must outlive the reading.
struct image_file {
  std::span<const std::byte> bytes;
  std::string_view doing;  // the beginning of every error: "decode a.jpg"
  std::int64_t max_pixels = 0;
  bool strict = true;
};

// Throws the error of an image whose data violate its format. `reason`: the details, if known.
[[noreturn]] inline void throw_damaged(const image_file& file, std::string_view format,
                                       std::string_view reason = {}) {
  std::string text = "the " + std::string(format) + "'s data are damaged";
  if (!reason.empty()) text.append(": ").append(reason);
  throw error(errc::invalid_data, file.doing, text);
}

// Throws error(limit_exceeded) for more than `max_pixels`, and error(invalid_data) for a side below
// 1 or beyond int.
void check_image_size(const image_file& file, std::int64_t width, std::int64_t height);

// Reads images of one format, one after another. Not thread-safe. Every member throws errors that
// begin with image_file::doing; afterwards, the reader is ready for the next `open`.
class image_reader : public row_source {
 public:
  virtual ~image_reader() = default;

  // Reads at least the header. Throws error(limit_exceeded) for an image of more than `max_pixels`
  // before memory for pixels is allocated, error(invalid_data) for damage, and error(unsupported)
  // for a kind that is not handled.
  virtual void open(const image_file& file) = 0;

  // The size as stored, before it is oriented.
  int width() const noexcept { return width_; }
  int height() const noexcept { return height_; }
  bool is_grey() const noexcept { return grey_; }

  // Whether its memory is more than a thread should keep.
  bool is_large() const noexcept { return is_large(width_, height_); }
  static bool is_large(int width, int height) noexcept {
    constexpr std::int64_t most = 1 << 21;
    return std::int64_t{width} * height > most;
  }

  // Whether libraries have warned about the image so far.
  virtual bool warned() const noexcept { return false; }

  // The Exif orientation of the image, 1 to 8.
  virtual int orientation(const image_file& file) const;

  // Selects the pixels that `row` returns: columns from `columns.low` on, with 1 or 3 channels of 8
  // bits. Rows must be requested from `rows.low` on, in ascending order; the last `kept` rows stay
  // valid.
  virtual void start_rows(int channels, const axis_range& columns, const axis_range& rows,
                          int kept) = 0;

  // Frees the memory of the image.
  virtual void close() noexcept = 0;

 protected:
  // `open` must call this before it allocates memory for pixels.
  void set_shape(const image_file& file, std::int64_t width, std::int64_t height, bool grey);

 private:
  int width_ = 0;
  int height_ = 0;
  bool grey_ = false;
};

}  // namespace lade::media
