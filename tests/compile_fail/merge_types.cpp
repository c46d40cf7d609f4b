// error: lade::merge: the inputs must be a list of pipelines with items of the same type
#include <lade/from.hpp>
#include <lade/merge.hpp>

#include <string>
#include <vector>

auto both = lade::merge(lade::from(std::vector{1}), lade::from(std::vector{std::string("a")}));
