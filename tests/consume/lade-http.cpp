// A program of somebody else's that says what it was linked with.

#include <lade/io/http/library.hpp>
#include <lade/tensor.hpp>

float sum(const lade::tensor& batch);  // model.cpp

int main() {
  lade::tensor batch(lade::element_type::f32, {1});
  *batch.data<float>() = 1;
  return sum(batch) == 1 && lade::io::http::describe().starts_with("libcurl/") ? 0 : 1;
}
