// error: lade::route_batches: the router must take an item or a std::vector of items
#include <lade/batch.hpp>
#include <lade/chain.hpp>
#include <lade/from.hpp>
#include <lade/route_batches.hpp>

#include <string>
#include <vector>

static int kind_of(const std::vector<std::string>& batch);

auto routed = lade::from(std::vector{1, 2}) | lade::batch(2) |
              lade::route_batches(kind_of, lade::chain(), lade::chain());
