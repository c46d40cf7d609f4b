// What the readers of all image formats have in common.

#pragma once

#include "resizer.hpp"

#include <lade/error.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace lade::media {

// An image file to be read. All of it outlives the reading.
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

// Throws error(limit_exceeded) for more than `max_pixels`, error(invalid_data) for a size that no
// image has.
void check_image_size(const image_file& file, std::int64_t width, std::int64_t height);

// Reads images of one format, one after another. For one thread. Every member throws errors that
// begin with image_file::doing; after one, the reader is ready for the next `open`.
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

  // Whether its scratch memory is more than a thread is to keep.
  bool is_large() const noexcept { return is_large(width_, height_); }
  static bool is_large(int width, int height) noexcept {
    constexpr std::int64_t most = 1 << 21;
    return std::int64_t{width} * height > most;
  }

  // Whether the image was decoded in spite of a warning so far.
  virtual bool warned() const noexcept { return false; }

  // How the file says that the image is to be turned: an Exif orientation, 1 to 8.
  virtual int orientation(const image_file& file) const;

  // Makes `row` return the columns from `columns.low` on, of 1 or 3 channels of 8 bits. Rows are
  // asked for from `rows.low` on; the last `kept` rows stay in place.
  virtual void start_rows(int channels, const axis_range& columns, const axis_range& rows,
                          int kept) = 0;

  // Frees what belongs to the image alone.
  virtual void close() noexcept = 0;

 protected:
  // To be called by `open`, before memory for pixels is allocated.
  void set_shape(const image_file& file, std::int64_t width, std::int64_t height, bool grey);

 private:
  int width_ = 0;
  int height_ = 0;
  bool grey_ = false;
};

}  // namespace lade::media
