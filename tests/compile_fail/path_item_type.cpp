// error: a path must be a stage, such as lade::map(function), that takes items of this type
#include <lade/chain.hpp>
#include <lade/from.hpp>
#include <lade/pad.hpp>
#include <lade/tee.hpp>

#include <vector>

auto pairs = lade::from(std::vector{1, 2}) | lade::tee(lade::chain(), lade::pack());
