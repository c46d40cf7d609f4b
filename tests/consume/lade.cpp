// A program of somebody else's, in two files. It uses what every trainer uses.

#include <lade/error.hpp>
#include <lade/tensor.hpp>

#include <cstdio>

float sum(const lade::tensor& batch);  // model.cpp

int main() {
  lade::tensor batch(lade::element_type::f32, {2, 3});
  for (int i = 0; i < 6; ++i) batch.data<float>()[i] = static_cast<float>(i);
  if (sum(batch) != 15) return 1;
  try {
    lade::raise(2, "open train");
  } catch (const lade::error& e) {
    return std::puts(e.what()) < 0;
  }
  return 1;
}
