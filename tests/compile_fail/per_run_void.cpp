// error: lade::per_run: make must return the function
#include <lade/per_run.hpp>

auto made = lade::per_run([](const lade::stage_run&) {});
