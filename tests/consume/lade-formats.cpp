// A program of somebody else's that parses a record.

#include <lade/io/formats/tfrecord.hpp>
#include <lade/tensor.hpp>

float sum(const lade::tensor& batch);  // model.cpp

int main() {
  lade::tensor batch(lade::element_type::f32, {1});
  *batch.data<float>() = 1;
  auto record = lade::io::parse_example(lade::sample("empty"));
  return sum(batch) == 1 && record.fields().empty() ? 0 : 1;
}
