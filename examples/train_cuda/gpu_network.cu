#include "network.hpp"

#include <stdexcept>
#include <string>
#include <vector>

#include <cuda_runtime.h>

namespace {

constexpr unsigned threads = 128;

constexpr int row = static_cast<int>(network::inputs) + 1;
constexpr int out_row = static_cast<int>(network::hidden) + 1;
constexpr int hidden = static_cast<int>(network::hidden);
constexpr int inputs = static_cast<int>(network::inputs);
constexpr int classes = static_cast<int>(network::classes);

void check(cudaError_t result, const char* doing) {
  if (result != cudaSuccess)
    throw std::runtime_error(std::string(doing) + ": " + cudaGetErrorString(result));
}

__device__ float scaled(std::uint8_t pixel) {
  return (static_cast<float>(pixel) - 128.0f) / 128.0f;
}

// One thread for each unit of each image.
__global__ void activate(const std::uint8_t* images, const float* first, float* units, int size) {
  int at = static_cast<int>(blockIdx.x * threads + threadIdx.x);
  if (at >= size * hidden) return;
  const std::uint8_t* image = images + at / hidden * inputs;
  const float* weights = first + at % hidden * row;
  float sum = weights[inputs];
  for (int i = 0; i < inputs; ++i) sum += weights[i] * scaled(image[i]);
  units[at] = fmaxf(sum, 0.0f);
}

// One thread for each image: the derivatives of the loss by the outputs.
__global__ void compare(const float* units, const float* second, const std::int64_t* labels,
                        float* errors, double* totals, int size) {
  int s = static_cast<int>(blockIdx.x * threads + threadIdx.x);
  if (s >= size) return;
  float outputs[classes];
  int most = 0;
  for (int c = 0; c < classes; ++c) {
    const float* weights = second + c * out_row;
    outputs[c] = weights[hidden];
    for (int h = 0; h < hidden; ++h) outputs[c] += weights[h] * units[s * hidden + h];
    if (outputs[c] > outputs[most]) most = c;
  }
  float highest = outputs[most];
  float sum = 0;
  for (float& each : outputs) sum += each = expf(each - highest);
  int label = static_cast<int>(labels[s]);
  atomicAdd(&totals[0], static_cast<double>(-logf(outputs[label] / sum)));
  if (most == label) atomicAdd(&totals[1], 1.0);
  for (int c = 0; c < classes; ++c)
    errors[s * classes + c] = outputs[c] / sum - (c == label ? 1.0f : 0.0f);
}

// One thread for each unit of each image: the derivatives by the units.
__global__ void go_back(const float* units, const float* second, const float* errors, float* back,
                        int size) {
  int at = static_cast<int>(blockIdx.x * threads + threadIdx.x);
  if (at >= size * hidden) return;
  int s = at / hidden, h = at % hidden;
  float sum = 0;
  for (int c = 0; c < classes; ++c) sum += second[c * out_row + h] * errors[s * classes + c];
  back[at] = units[at] > 0 ? sum : 0.0f;
}

// One thread for each weight.
__global__ void improve_second(float* second, const float* units, const float* errors, float rate,
                               int size) {
  int at = static_cast<int>(blockIdx.x * threads + threadIdx.x);
  if (at >= classes * out_row) return;
  int c = at / out_row, h = at % out_row;
  float sum = 0;
  for (int s = 0; s < size; ++s)
    sum += errors[s * classes + c] * (h == hidden ? 1.0f : units[s * hidden + h]);
  second[at] -= rate * sum;
}

__global__ void improve_first(float* first, const std::uint8_t* images, const float* back,
                              float rate, int size) {
  int at = static_cast<int>(blockIdx.x * threads + threadIdx.x);
  if (at >= hidden * row) return;
  int h = at / row, i = at % row;
  float sum = 0;
  for (int s = 0; s < size; ++s) {
    float value = i == inputs ? 1.0f : scaled(images[s * inputs + i]);
    sum += back[s * hidden + h] * value;
  }
  first[at] -= rate * sum;
}

class gpu_network final : public network {
 public:
  explicit gpu_network(cudaStream_t stream) : stream_(stream) {
    std::vector<float> weights(static_cast<std::size_t>(hidden * row + classes * out_row));
    for (std::size_t i = 0; i < weights.size(); ++i) weights[i] = first_weight(i);
    std::size_t scratch = most_in_batch * (2 * network::hidden + network::classes);
    check(cudaMalloc(&first_, (weights.size() + scratch) * sizeof(float)), "allocate a network");
    second_ = first_ + hidden * row;
    units_ = second_ + classes * out_row;
    back_ = units_ + most_in_batch * network::hidden;
    errors_ = back_ + most_in_batch * network::hidden;
    check(cudaMalloc(&totals_, 2 * sizeof(double)), "allocate a network");
    check(cudaMemsetAsync(totals_, 0, 2 * sizeof(double), stream_), "clear the totals");
    check(cudaMemcpyAsync(first_, weights.data(), weights.size() * sizeof(float), cudaMemcpyDefault,
                          stream_),
          "copy the first weights");
    check(cudaStreamSynchronize(stream_), "copy the first weights");
  }
  gpu_network(const gpu_network&) = delete;
  ~gpu_network() override {
    (void)cudaStreamSynchronize(stream_);
    (void)cudaFree(first_);
    (void)cudaFree(totals_);
  }

  void step(const std::uint8_t* images, const std::int64_t* labels, std::size_t count) override {
    int size = static_cast<int>(count);
    float rate = network::learning_rate / static_cast<float>(size);
    activate<<<blocks(size * hidden), threads, 0, stream_>>>(images, first_, units_, size);
    compare<<<blocks(size), threads, 0, stream_>>>(units_, second_, labels, errors_, totals_, size);
    go_back<<<blocks(size * hidden), threads, 0, stream_>>>(units_, second_, errors_, back_, size);
    improve_second<<<blocks(classes * out_row), threads, 0, stream_>>>(second_, units_, errors_,
                                                                       rate, size);
    improve_first<<<blocks(hidden * row), threads, 0, stream_>>>(first_, images, back_, rate, size);
    check(cudaGetLastError(), "queue a step");
    images_ += static_cast<double>(size);
  }

  void repeat(const std::uint8_t* images, std::size_t count) override {
    int size = static_cast<int>(count);
    activate<<<blocks(size * hidden), threads, 0, stream_>>>(images, first_, units_, size);
    check(cudaGetLastError(), "queue more work");
  }

  totals take_totals() override {
    double sums[2];
    check(cudaMemcpyAsync(sums, totals_, sizeof sums, cudaMemcpyDefault, stream_), "read totals");
    check(cudaMemsetAsync(totals_, 0, sizeof sums, stream_), "clear the totals");
    check(cudaStreamSynchronize(stream_), "train");
    totals all{sums[0], sums[1], images_};
    images_ = 0;
    return all;
  }

 private:
  static unsigned blocks(int items) {
    return (static_cast<unsigned>(items) + threads - 1) / threads;
  }

  cudaStream_t stream_;
  float* first_ = nullptr;  // [hidden, inputs + 1], the bias last; start of one memory for all five
  float* second_;           // [classes, hidden + 1]
  float* units_;            // [size, hidden]
  float* back_;             // [size, hidden]
  float* errors_;           // [size, classes]
  double* totals_ = nullptr;
  double images_ = 0;
};

}  // namespace

std::unique_ptr<network> make_gpu_network(CUstream_st* stream) {
  return std::make_unique<gpu_network>(stream);
}
