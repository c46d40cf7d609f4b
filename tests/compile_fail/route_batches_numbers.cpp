// error: lade::route_batches: a router of batches must return a range with the number of a path
#include <lade/batch.hpp>
#include <lade/chain.hpp>
#include <lade/from.hpp>
#include <lade/route_batches.hpp>

#include <string>
#include <vector>

static std::vector<std::string> names(const std::vector<int>&) { return {}; }

auto routed = lade::from(std::vector{1, 2}) | lade::batch(2) |
              lade::route_batches(names, lade::chain(), lade::chain());
