// error: lade::flat_map: the function must take the stage's item, by value or const reference, and
// be callable as const
#include <lade/flat_map.hpp>
#include <lade/from.hpp>

#include <vector>

static std::vector<int> copies(int i, int n) { return std::vector<int>(std::size_t(n), i); }

auto many =
    lade::from(std::vector{1}) | lade::flat_map([n = 0](int i) mutable { return copies(i, n++); });
