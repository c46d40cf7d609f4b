// error: lade: a custom stage must return an async_generator of the new items
#include <lade/async_generator.hpp>
#include <lade/from.hpp>
#include <lade/through.hpp>

#include <vector>

static std::vector<int> gather(lade::async_generator<int> in);

auto same = lade::from(std::vector{1, 2}) | lade::through(gather);
