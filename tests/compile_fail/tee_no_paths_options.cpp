// error: lade::tee: there must be a path
#include <lade/from.hpp>
#include <lade/tee.hpp>

#include <vector>

auto nothing = lade::from(std::vector{1, 2}) | lade::tee(lade::tee_options());
