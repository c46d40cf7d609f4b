// JPEG by lade's own decoder: rows as the resizer takes them.

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

// Thrown while an image is read that libjpeg-turbo is to read from the beginning: it says what is
// wrong with damaged data, or decodes them as well as it can.
struct needs_libjpeg {};

// Reads one image after another, all of it as libjpeg-turbo does: exact transform, smooth
// upsampling. While it decodes an image, others that have begun are decoded, too, one at a time.
// For one thread.
class quick_jpeg {
 public:
  explicit quick_jpeg(simd level = best_simd())
      : kernels_(&jpeg_kernels_of(level)), image_(level) {}

  // Reads the headers. False if libjpeg-turbo is to read the image.
  bool open(const image_file& file, jpeg_table_cache& tables) {
    return image_.open(file.bytes, tables, file.max_pixels);
  }
  int width() const noexcept { return image_.headers().width; }
  int height() const noexcept { return image_.headers().height; }

  // Has the components be decoded at 1 / `reduction` of the size; see jpeg_image. Then colour_row
  // is not for this image.
  void reduce(int reduction) noexcept { image_.reduce(reduction); }

  bool is_grey() const noexcept { return image_.headers().count == 1; }
  bool is_rgb() const noexcept { return image_.headers().rgb; }

  // Says which part will be asked for; the last `kept` rows of components stay in place. From now
  // on, another image's decoding takes this one along.
  void begin(const jpeg_part& part, int kept) {
    part_ = part;
    image_.begin(part, kept);
  }

  // Whether all of the part has been decoded, or nothing can be.
  bool is_complete() const noexcept { return image_.is_complete(); }

  // Whether another image's decoding can take this one along now. Of a large image only a few rows
  // are in memory, so that it stops after them.
  bool can_interleave() const noexcept { return image_.decodes(); }

  // Has decoding take other images along, until close(): those that `partner` gives, which is asked
  // again when the one it gave does not go along any more. Null: there is none at the moment.
  using partner_source = std::function<quick_jpeg*()>;
  void interleave_with(partner_source partner) { partner_ = std::move(partner); }

  // Prepares colour_row, whose last `kept` rows stay in place.
  void start_colours(int kept);

  // Red, green or blue of row `y`, from column part.left on. Rows are asked for from top to bottom.
  // Throws needs_libjpeg.
  const std::uint8_t* colour_row(std::size_t colour, int y);

  // A component's own row, from sample 0 on; `y` is of the component. Throws needs_libjpeg.
  const std::uint8_t* component_row(std::size_t component, int y);

  // How a component lies against the first. Of the rows, those that are decoded with the rows of
  // the first above `bottom`.
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
  jpeg_image* partner_image_ = nullptr;  // that partner_ has given
  jpeg_part part_;
  int left_ = 0;  // the first column that is converted: a whole sample of coarse components
  std::size_t row_bytes_ = 0;
  row_ring ring_;  // red, green and blue of a row, one behind the other
  std::array<std::vector<std::uint8_t>, 3> upsampled_;
};

// A colour of a quick_jpeg, or a component of it.
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
