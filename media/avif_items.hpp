// Where the AV1 data of an AVIF file lie, as its boxes say (ISO/IEC 14496-12).

#pragma once

#include "av1_header.hpp"

#include <lade/detail/common/byte_view.hpp>

namespace lade::media {

// Whether the file may be read as a sequence of images.
bool avif_has_tracks(detail::byte_view file) noexcept;

// Whether items may have any number of extents that take no byte of the file; libavif allocates
// them all.
bool avif_has_empty_extents(detail::byte_view file) noexcept;

// Whether the samples of a sequence lie in more chunks than libavif can number in good time: for
// each it looks through the list of how many samples chunks have.
bool avif_has_too_many_chunks(detail::byte_view file) noexcept;

// Adds each item that is coded as AV1, be it needed for the image or not, to `sizes`.
void add_avif_items(detail::byte_view file, av1_sizes& sizes);

}  // namespace lade::media
