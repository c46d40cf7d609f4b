// PBM, PGM and PPM with binary pixels.

#pragma once

#include "byte_view.hpp"
#include "frame_reader.hpp"

namespace lade::media {

// Reads the first image of a file whose samples have 1 to 16 bits.
class pnm_reader final : public frame_reader {
 public:
  static bool recognises(byte_view file) noexcept {
    return file.begins("P4") || file.begins("P5") || file.begins("P6");
  }

  void open(const image_file& file) override;
};

}  // namespace lade::media
