// error: lade: items must not be tasks or generators, which no stage would start
#include <lade/async_generator.hpp>
#include <lade/from.hpp>
#include <lade/map.hpp>

#include <vector>

static lade::async_generator<int> lines_of(int);

auto generators = lade::from(std::vector{1, 2}) | lade::map(lines_of);
