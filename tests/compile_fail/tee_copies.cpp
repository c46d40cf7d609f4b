// error: items must be copyable
#include <lade/chain.hpp>
#include <lade/from.hpp>
#include <lade/map.hpp>
#include <lade/tee.hpp>

#include <memory>
#include <vector>

static std::unique_ptr<int> owned(int i) { return std::make_unique<int>(i); }

auto twice = lade::from(std::vector{1, 2}) | lade::map(owned) | lade::tee(lade::chain());
