// Contexts of decoders are kept for the next stream, and scratch memory for each thread. They are
// freed before allocations are counted.

#include "../../../media/av/codec_pool.hpp"
#include "../../../media/decoders.hpp"
#include "../../support/live_allocations.hpp"

static const bool set = [] {
  lade::test::free_what_is_kept = [] {
    lade::media::pooled_codec::release_idle();
    lade::media::decoders::release();
  };
  return true;
}();
