// error: lade::from: the source must be a range, an index source, a listing, or a function
#include <lade/async_generator.hpp>
#include <lade/from.hpp>

static lade::async_generator<int> numbers();

auto source = lade::from(numbers());
