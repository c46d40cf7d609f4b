// error: lade::bucket: the length must take the stage's item by const reference or value, return an
// integer
#include <lade/bucket.hpp>
#include <lade/from.hpp>

#include <vector>

auto buckets = lade::from(std::vector{1}) | lade::bucket([](int& i) { return i; }, {.size = 2});
