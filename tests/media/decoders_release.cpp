// Decoders keep scratch memory for each thread. It is freed before allocations are counted.

#include "../../media/decoders.hpp"
#include "../support/live_allocations.hpp"

static const bool set = [] {
  lade::test::free_what_is_kept = lade::media::decoders::release;
  return true;
}();
