// error: lade::route: the router must take the stage's item by const reference or value
#include <lade/chain.hpp>
#include <lade/from.hpp>
#include <lade/route.hpp>

#include <vector>

auto routed = lade::from(std::vector{1}) |
              lade::route([](int& i) { return i % 2; }, lade::chain(), lade::chain());
