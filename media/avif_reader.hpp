// Reads AVIF with libavif.

#pragma once

#include "frame_reader.hpp"

#include <lade/support/byte_view.hpp>

struct avifDecoder;
struct avifImage;

namespace lade::media {

// Reads still images, and the first image of a sequence.
class avif_reader final : public frame_reader {
 public:
  static bool recognises(support::byte_view file) noexcept;

  void open(const image_file& file) override;
  void close() noexcept override;

  // Sets the size and the orientation without decoding. In a damaged file, they may differ from the
  // ones that `open` sets.
  void read_header(const image_file& file);

  // AVIF has properties for rotation and mirroring. Exif's orientation must be ignored.
  int orientation(const image_file&) const override { return orientation_; }

 private:
  struct samples;

  void prepare(avifDecoder& decoder, samples& from, const image_file& file);
  void parse(avifDecoder& decoder, const image_file& file);
  void check_samples(avifDecoder& decoder, samples& from, const image_file& file);
  void check_size(const samples& from, const image_file& file);
  void convert(const avifImage& image, const image_file& file);

  int orientation_ = 1;
  scratch rgba_;  // pixels of an image with alpha
};

}  // namespace lade::media
