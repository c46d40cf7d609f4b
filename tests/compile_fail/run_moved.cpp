// error: a run cannot be moved
#include <lade/from.hpp>
#include <lade/run.hpp>

#include <utility>

auto moved(lade::run<int>& items) { return lade::run<int>(std::move(items)); }
