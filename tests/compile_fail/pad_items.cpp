// error: lade: not a stage, or the stage does not take items of this type
#include <lade/from.hpp>
#include <lade/pad.hpp>

#include <vector>

auto padded = lade::from(std::vector{1}) | lade::pad();
