// Reads PBM, PGM and PPM with binary pixels.

#pragma once

#include "frame_reader.hpp"

#include <lade/support/byte_view.hpp>

namespace lade::media {

// Reads the first image of a file whose samples have 1 to 16 bits.
class pnm_reader final : public frame_reader {
 public:
  static bool recognises(support::byte_view file) noexcept {
    return file.begins("P4") || file.begins("P5") || file.begins("P6");
  }

  // The next number of a header; 0 if there is none. Moves `at` past it.
  static std::int64_t number(support::byte_view file, std::size_t& at);

  void open(const image_file& file) override;
};

}  // namespace lade::media
