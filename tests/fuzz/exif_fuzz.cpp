// Looks for an orientation in any bytes.

#include "../../media/exif.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const int orientation = lade::media::exif_orientation(std::as_bytes(std::span(data, size)));
  if (orientation < 1 || orientation > 8) std::abort();
  return 0;
}
