// A program of somebody else's that decodes videos on GPUs, and runs where there is none.

#include <lade/cuda/nvdec/capabilities.hpp>
#include <lade/error.hpp>
#include <lade/tensor.hpp>

#include <string>

float sum(const lade::tensor& batch);  // model.cpp

int main() {
  lade::tensor batch(lade::element_type::f32, {1});
  *batch.data<float>() = 1;
  bool knows = false;
  try {
    knows = lade::cuda::limits_of(lade::cuda::device(0), {.codec = "h264"}).engines >= 0;
  } catch (const lade::error& none) {
    knows = std::string(none.what()).size() > 0;
  }
  return sum(batch) == 1 && knows ? 0 : 1;
}
