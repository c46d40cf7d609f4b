// error: lade::route: there must be a path
#include <lade/from.hpp>
#include <lade/route.hpp>

#include <vector>

static int parity(int i) { return i % 2; }

auto routed = lade::from(std::vector{1, 2}) | lade::route(parity);
