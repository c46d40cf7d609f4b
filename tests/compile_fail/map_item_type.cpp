// error: lade::map: the function must take the stage's item, by value or const reference, and be
// callable as const
#include <lade/from.hpp>
#include <lade/map.hpp>

#include <string>
#include <vector>

auto texts = lade::from(std::vector{1}) | lade::map([](std::string text) { return text; });
