// error: lade::map: the function must return the new item
#include <lade/from.hpp>
#include <lade/map.hpp>
#include <lade/task.hpp>

#include <vector>

static lade::task<> forget(int);

auto nothing = lade::from(std::vector{1, 2}) | lade::map(forget);
