// error: lade: a custom stage must take an async_generator of each input, and its arguments
#include <lade/async_generator.hpp>
#include <lade/from.hpp>
#include <lade/merge.hpp>

#include <vector>

static lade::async_generator<int> pass_on(lade::async_generator<int> in);

static const auto items = lade::from(std::vector{1, 2});
auto joined = lade::combine(pass_on, items, items);
