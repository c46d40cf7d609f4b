// A program of somebody else's that reads an array.

#include <lade/error.hpp>
#include <lade/io/formats/npy.hpp>
#include <lade/tensor.hpp>

float sum(const lade::tensor& batch);  // model.cpp

int main() {
  lade::tensor batch(lade::element_type::f32, {1});
  *batch.data<float>() = 1;
  try {
    lade::io::parse_npy(lade::buffer(), "none.npy");
  } catch (const lade::error& refused) {
    return sum(batch) == 1 && refused.code() == lade::errc::invalid_data ? 0 : 1;
  }
  return 1;
}
