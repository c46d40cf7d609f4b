// error: lade::route_batches: there must be a path
#include <lade/batch.hpp>
#include <lade/from.hpp>
#include <lade/route_batches.hpp>

#include <vector>

static int parity(int i) { return i % 2; }

auto routed = lade::from(std::vector{1, 2}) | lade::batch(2) |
              lade::route_batches(parity, lade::route_options());
