// error: lade::filter: the predicate must take the stage's item, by value or const reference,
// return a bool
#include <lade/filter.hpp>
#include <lade/from.hpp>

#include <vector>

auto positive = lade::from(std::vector{1}) | lade::filter([](int& i) { return i > 0; });
