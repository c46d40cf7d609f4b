// Rows of a JPEG for the resizer, decoded by lade's own decoder.

#pragma once

#include "image_reader.hpp"
#include "jpeg_image.hpp"
#include "resizer.hpp"
#include "row_ring.hpp"

#include <array>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

namespace lade::media {

// Thrown if libjpeg-turbo must read the image from the start, because the data are damaged or
// unusual. libjpeg-turbo reports the damage, or conceals it.
struct needs_libjpeg {};

// Reads one image after another. The pixels are those of libjpeg-turbo with exact DCT and smooth
// upsampling. While it decodes an image, it also decodes a second one that has started, the
// partner: see jpeg_entropy.hpp. One thread at a time.
class quick_jpeg {
 public:
  explicit quick_jpeg(simd level = best_simd())
      : kernels_(&jpeg_kernels_of(level)), image_(level) {}

  // Reads the headers. Returns false if libjpeg-turbo must read the image.
  bool open(const image_file& file, jpeg_table_cache& tables) {
    return image_.open(file.bytes, tables, file.max_pixels);
  }
  int width() const noexcept { return image_.headers().width; }
  int height() const noexcept { return image_.headers().height; }

  // Sets the scale 1 / `reduction`; see jpeg_image. colour_row must not be called then.
  void reduce(int reduction) noexcept { image_.reduce(reduction); }

  bool is_grey() const noexcept { return image_.headers().count == 1; }
  bool is_rgb() const noexcept { return image_.headers().rgb; }

  // Sets the part to decode; the last `kept` rows of components stay valid. From now on, this image
  // may be the partner of another one.
  void begin(const jpeg_part& part, int kept) {
    part_ = part;
    image_.begin(part, kept);
  }

  // Whether the part is decoded, or cannot be decoded.
  bool is_complete() const noexcept { return image_.is_complete(); }

  // Whether this image can be a partner now. A large image has memory for a few rows, and stops
  // when they are full.
  bool can_interleave() const noexcept { return image_.decodes(); }

  // Sets the source of partners until close(). It is called when there is no partner, or when the
  // last one cannot be decoded further. It returns null if there is none at the moment.
  using partner_source = std::function<quick_jpeg*()>;
  void interleave_with(partner_source partner) { partner_ = std::move(partner); }

  // Prepares colour_row, whose last `kept` rows stay valid.
  void start_colours(int kept);

  // Red, green or blue of row `y`, from column part.left on. Rows must be requested from top to
  // bottom. Throws needs_libjpeg.
  const std::uint8_t* colour_row(std::size_t colour, int y);

  // Row `y` of a component, from sample 0 on. Throws needs_libjpeg.
  const std::uint8_t* component_row(std::size_t component, int y);

  // The grid of a component relative to the first one; of the rows that are decoded with the first
  // component's rows above `bottom`.
  coarse_axis columns(std::size_t component) const noexcept;
  coarse_axis rows(std::size_t component, int bottom) const noexcept;

  void close() noexcept {
    image_.close();
    partner_ = nullptr;
    partner_image_ = nullptr;
  }

 private:
  void decode(int y);
  void find_partner();
  void make_row(int y, std::uint8_t* out);
  const std::uint8_t* upsampled(std::size_t component, int y);
  void repeat_columns(const std::uint8_t* in, int times, std::uint8_t* out) const noexcept;

  const jpeg_kernels* kernels_;
  jpeg_image image_;
  partner_source partner_;
  jpeg_image* partner_image_ = nullptr;  // the last result of partner_
  jpeg_part part_;
  int left_ = 0;  // the first converted column, the start of a subsampled sample
  std::size_t row_bytes_ = 0;
  row_ring ring_;  // red, green and blue of each row, contiguous
  std::array<std::vector<std::uint8_t>, 3> upsampled_;
};

// The rows of one colour, or of one component, of a quick_jpeg.
class quick_colour_rows final : public row_source {
 public:
  quick_colour_rows(quick_jpeg& from, std::size_t colour) : from_(from), colour_(colour) {}
  const std::uint8_t* row(int y) override { return from_.colour_row(colour_, y); }

 private:
  quick_jpeg& from_;
  std::size_t colour_;
};

class quick_component_rows final : public row_source {
 public:
  quick_component_rows(quick_jpeg& from, std::size_t component, int left)
      : from_(from), component_(component), left_(left) {}
  const std::uint8_t* row(int y) override { return from_.component_row(component_, y) + left_; }

 private:
  quick_jpeg& from_;
  std::size_t component_;
  int left_;
};

}  // namespace lade::media
