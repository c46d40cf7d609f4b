// error: lade::flat_map: the function must return a range of the new items, or an async_generator
#include <lade/flat_map.hpp>
#include <lade/from.hpp>

#include <vector>

static int next(int i) { return i + 1; }

auto parts = lade::from(std::vector{1, 2}) | lade::flat_map(next);
