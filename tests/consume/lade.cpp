// A program of somebody else's, in two files: a pipeline of numbers, a stage of its own, tensors.

#include <lade/lade.hpp>

#include <numeric>
#include <vector>

float sum(const lade::tensor& batch);  // model.cpp

static lade::async_generator<int> odd(lade::async_generator<int> in) {
  while (auto number = co_await in.next())
    if (*number % 2 != 0) co_yield std::move(*number);
}

static lade::tensor as_tensor(const std::vector<int>& numbers) {
  lade::tensor result(lade::element_type::f32, {static_cast<std::int64_t>(numbers.size())});
  std::copy(numbers.begin(), numbers.end(), result.data<float>());
  return result;
}

int main() {
  lade::runtime runtime({.threads = 2});
  std::vector<int> numbers(100);
  std::iota(numbers.begin(), numbers.end(), 0);

  auto batches = lade::from(numbers) | lade::shuffle({.seed = 7}) |
                 lade::map([](int i) { return i + 1; }, {.concurrency = 4}) | lade::through(odd) |
                 lade::batch({.size = 8}) | lade::map(as_tensor);

  float total = 0;
  for (auto& batch : runtime.run(batches)) total += sum(batch);
  return total == 50 * 50 ? 0 : 1;
}
