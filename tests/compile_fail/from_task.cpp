// error: lade::from: the task must return a random-access range or an index source
#include <lade/from.hpp>
#include <lade/task.hpp>

lade::task<int> load() { co_return 7; }

auto all = lade::from(load);
