// error: lade::merge: the inputs must be a list of pipelines with items of the same type
#include <lade/from.hpp>
#include <lade/merge.hpp>

#include <vector>

static const auto items = lade::from(std::vector{1, 2});
auto both = lade::merge(items, items);
