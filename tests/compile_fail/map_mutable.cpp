// error: lade::map: the function must take the stage's item, by value or const reference, and be
// callable as const
#include <lade/from.hpp>
#include <lade/map.hpp>

#include <vector>

auto counted = lade::from(std::vector{1}) | lade::map([n = 0](int i) mutable { return i + n++; });
