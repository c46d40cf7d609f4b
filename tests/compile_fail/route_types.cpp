// error: all paths must end in items of the same type
#include <lade/chain.hpp>
#include <lade/from.hpp>
#include <lade/map.hpp>
#include <lade/route.hpp>

#include <string>
#include <vector>

static int parity(int i) { return i % 2; }
static std::string text(int i) { return std::to_string(i); }

auto routed = lade::from(std::vector{1, 2}) | lade::route(parity, lade::chain(), lade::map(text));
