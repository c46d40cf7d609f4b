// Contexts of decoders are kept for the next stream. They are freed before allocations are counted.

#include "../../../media/av/codec_pool.hpp"
#include "../../support/live_allocations.hpp"

static const bool set = [] {
  lade::test::free_what_is_kept = lade::media::pooled_codec::release_idle;
  return true;
}();
