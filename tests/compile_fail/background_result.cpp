// error: lade::background: the function must take the arguments, be callable as const, and
// return a task<>
#include <lade/background.hpp>
#include <lade/from.hpp>

#include <vector>

auto items = lade::from(std::vector{1}) | lade::background([] { return 1; });
