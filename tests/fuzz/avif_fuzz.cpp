// Looks for sequence headers in any bytes: as a sample of AV1, and as an AVIF file.

#include "../../media/avif_items.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

using namespace lade::media;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const lade::support::byte_view bytes(std::as_bytes(std::span(data, size)));
  av1_sizes at_once(size);
  at_once.add(bytes);
  av1_sizes in_parts(size);
  for (std::size_t at = 0; at < size; at += 3)
    in_parts.add(bytes.part(at, size - at < 3 ? size - at : 3));
  if (at_once.largest().pixels() != in_parts.largest().pixels()) std::abort();
  av1_sizes of_items(size);
  add_avif_items(bytes, of_items);
  avif_has_tracks(bytes);
  avif_has_empty_extents(bytes);
  return 0;
}
