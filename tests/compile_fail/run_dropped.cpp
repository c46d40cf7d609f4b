// error: a run that nobody holds ends at once
#include <lade/from.hpp>
#include <lade/run.hpp>

#pragma GCC diagnostic error "-Wunused-result"

void drop(lade::runtime& runtime, const lade::pipeline<int>& numbers) { runtime.run(numbers); }
