// error: lade::route_batches: paths must end in vectors
#include <lade/batch.hpp>
#include <lade/from.hpp>
#include <lade/map.hpp>
#include <lade/route_batches.hpp>

#include <string>
#include <vector>

static int parity(int i) { return i % 2; }
static std::string text(const std::vector<int>&) { return {}; }

auto routed =
    lade::from(std::vector{1, 2}) | lade::batch(2) | lade::route_batches(parity, lade::map(text));
