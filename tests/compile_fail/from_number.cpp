// error: lade::from: not something with items
#include <lade/from.hpp>

auto numbers = lade::from(7);
