// error: lade::zip: there must be an input
#include <lade/merge.hpp>

auto rows = lade::zip();
