// A program of somebody else's that names shards.

#include <lade/io/formats/shards.hpp>
#include <lade/tensor.hpp>

float sum(const lade::tensor& batch);  // model.cpp

int main() {
  lade::tensor batch(lade::element_type::f32, {1});
  *batch.data<float>() = 1;
  return sum(batch) == 1 && lade::io::shards("{0..9}.tar").names().size() == 10 ? 0 : 1;
}
