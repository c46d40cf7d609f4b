// The other file of the program: the same headers in a second place.

#include <lade/tensor.hpp>

#include <numeric>

float sum(const lade::tensor& batch);

float sum(const lade::tensor& batch) {
  auto* first = batch.data<float>();
  return std::accumulate(first, first + batch.spec().elements(), 0.0f);
}
