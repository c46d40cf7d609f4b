// error: lade::unbatch: items must be std::vectors
#include <lade/batch.hpp>
#include <lade/from.hpp>

#include <vector>

auto apart = lade::from(std::vector{1, 2}) | lade::unbatch();
