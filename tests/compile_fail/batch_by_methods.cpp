// error: lade::batch_by: the accumulator must be copyable, with add(item), which returns a
// std::optional of a batch
#include <lade/batch_by.hpp>
#include <lade/from.hpp>

#include <vector>

struct pairs {
  void add(int);
  std::vector<int> flush();
};

auto batches = lade::from(std::vector{1, 2}) | lade::batch_by(pairs());
