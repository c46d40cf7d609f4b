// Locates the AV1 data in the boxes of an AVIF file (ISO/IEC 14496-12).

#pragma once

#include "av1_header.hpp"

#include <lade/support/byte_view.hpp>

namespace lade::media {

// Whether the file has a sequence of images: a "moov" box.
bool avif_has_tracks(support::byte_view file) noexcept;

// Whether items may have extents without a length. They take no bytes of the file, so there can be
// any number of them; libavif allocates memory for each.
bool avif_has_empty_extents(support::byte_view file) noexcept;

// Whether libavif would need too long to number the chunks of a sequence: for each chunk, it
// searches the list of chunk sizes ("stsc").
bool avif_has_too_many_chunks(support::byte_view file) noexcept;

// Adds the data of every item of type "av01" to `sizes`, whether or not the image uses it.
void add_avif_items(support::byte_view file, av1_sizes& sizes);

}  // namespace lade::media
