// A program of somebody else's that asks for GPUs, and runs where there is none.

#include <lade/cuda/device.hpp>
#include <lade/tensor.hpp>

float sum(const lade::tensor& batch);  // model.cpp

int main() {
  lade::tensor batch(lade::element_type::f32, {1});
  *batch.data<float>() = 1;
  bool none = lade::cuda::device::count() == 0;
  return sum(batch) == 1 && none == !lade::cuda::device::why_none().empty() ? 0 : 1;
}
