// Reads of bytes that may be anything.

#pragma once

#include <lade/detail/byte_view.hpp>

namespace lade::media {

using lade::detail::byte_view;

}  // namespace lade::media
