// error: lade::end_together: the function must take a bool, return a bool
#include <lade/equal_steps.hpp>
#include <lade/from.hpp>

#include <vector>

static bool any_ended();

auto steps = lade::from(std::vector{1, 2}) | lade::end_together(any_ended);
