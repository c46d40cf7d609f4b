// error: lade::from_index: the function must take the index, return the item, and be callable as
// const
#include <lade/from.hpp>

#include <string>

auto names = lade::from_index(3, [](std::string name) { return name; });
