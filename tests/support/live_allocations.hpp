// What a test program may ask of the count of live allocations.

#pragma once

namespace lade::test {

// Called on the thread of the tests before and after each, to free what is kept between them on
// purpose. May be set before the first test.
inline void (*free_what_is_kept)() = nullptr;

}  // namespace lade::test
