// error: lade::flat_map: what a view refers to is copied: return a container
#include <lade/flat_map.hpp>
#include <lade/from.hpp>

#include <memory>
#include <span>
#include <vector>

static std::span<std::unique_ptr<int>> kept(int);

auto parts = lade::from(std::vector{1, 2}) | lade::flat_map(kept);
