// error: lade::per_run: make must take a const lade::stage_run& and be callable as const
#include <lade/from.hpp>
#include <lade/map.hpp>
#include <lade/per_run.hpp>

#include <vector>

auto made = lade::per_run([] { return [](int i) { return i; }; });
