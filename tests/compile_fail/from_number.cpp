// error: lade::from: the source must be a range
#include <lade/from.hpp>

auto numbers = lade::from(7);
