// error: lade: a custom stage must take an async_generator of each input, and its arguments
#include <lade/async_generator.hpp>
#include <lade/from.hpp>
#include <lade/through.hpp>

#include <string>
#include <vector>

static lade::async_generator<int> pass_on(lade::async_generator<std::string> in);

auto same = lade::from(std::vector{1, 2}) | lade::through(pass_on);
