// A program of somebody else's that asks for GPUs, and runs where there is none.

#include <lade/cuda/copy_bytes.hpp>
#include <lade/cuda/device.hpp>
#include <lade/error.hpp>
#include <lade/tensor.hpp>

float sum(const lade::tensor& batch);  // model.cpp

// Whether a kernel is an error that says so where there is no GPU.
static bool is_refused(const lade::tensor& batch) {
  try {
    lade::cuda::copy_bytes(batch.bytes(), batch.bytes() + 2, 2, nullptr);
    return false;
  } catch (const lade::error&) {
    return true;
  }
}

int main() {
  lade::tensor batch(lade::element_type::f32, {1});
  *batch.data<float>() = 1;
  bool none = lade::cuda::device::count() == 0;
  if (none && !is_refused(batch)) return 1;
  return sum(batch) == 1 && none == !lade::cuda::device::why_none().empty() ? 0 : 1;
}
