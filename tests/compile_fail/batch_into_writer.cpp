// error: lade::batch_into: a writer must have spec()
#include <lade/batch.hpp>
#include <lade/sample.hpp>
#include <lade/tensor.hpp>

struct writer {
  void operator()(const lade::sample&, const lade::tensor&) const;
};

auto batches = lade::batch_into(writer(), {.size = 2});
