// error: lade::route: the router must return the number of a path
#include <lade/chain.hpp>
#include <lade/from.hpp>
#include <lade/route.hpp>

#include <string>
#include <vector>

static std::string text(int i) { return std::to_string(i); }

auto routed = lade::from(std::vector{1}) | lade::route(text, lade::chain(), lade::chain());
