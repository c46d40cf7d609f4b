// error: lade: items must not be tasks or generators, which no stage would start
#include <lade/from.hpp>
#include <lade/task.hpp>

#include <cstdint>

static lade::task<int> load(std::uint64_t);

auto tasks = lade::from_index(5, load);
