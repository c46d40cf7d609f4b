// error: lade::batch_into: there must be a writer
#include <lade/batch.hpp>

auto batches = lade::batch_into(lade::writers(), {.size = 2});
