// Contexts of decoders and resamplers are kept for the next stream, and scratch memory for each
// thread. They are freed before allocations are counted.

#include "../../../media/av/codec_pool.hpp"
#include "../../../media/av/swr_pool.hpp"
#include "../../../media/decoders.hpp"
#include "../../support/live_allocations.hpp"

// libx265 3.5 leaks a kilobyte for each encoder.
extern "C" const char* __lsan_default_suppressions() { return "leak:libx265"; }

static void free_idle_contexts() {
  lade::media::pooled_codec::release_idle();
  lade::media::pooled_swr::release_idle();
  lade::media::decoders::release();
}

static const bool set = [] {
  lade::test::free_what_is_kept = free_idle_contexts;
  return true;
}();
