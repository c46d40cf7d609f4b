// A network with one hidden layer that classifies small grey images, on the CPU or on a GPU.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

struct CUstream_st;

class network {
 public:
  static constexpr std::size_t inputs = 28 * 28;
  static constexpr std::size_t hidden = 64;
  static constexpr std::size_t classes = 10;
  static constexpr std::size_t most_in_batch = 256;
  static constexpr float learning_rate = 0.05f;

  virtual ~network() = default;

  // A step of gradient descent on u8 [size, 28, 28, 1] images and i64 [size] labels. The memory is
  // that of the CPU or of the GPU, wherever the network is. On a GPU the step is only queued.
  virtual void step(const std::uint8_t* images, const std::int64_t* labels, std::size_t size) = 0;

  // Work of a part of a step, on the same images, that changes nothing: for longer steps.
  virtual void repeat(const std::uint8_t* images, std::size_t size) = 0;

  // The sums over all steps since the last call. Waits for the steps.
  struct totals {
    double loss = 0;
    double right = 0;  // images that were classified correctly before their step
    double images = 0;
  };
  virtual totals take_totals() = 0;
};

std::unique_ptr<network> make_cpu_network();

// On the current device. The stream must outlive the network. Throws std::runtime_error.
std::unique_ptr<network> make_gpu_network(CUstream_st* stream);

// The first weights, the same for both: small, and of both signs.
inline float first_weight(std::size_t i) {
  auto bits = static_cast<std::uint32_t>(i) * 2654435761u;
  bits = (bits ^ (bits >> 15)) * 2246822519u;
  return (static_cast<float>(bits >> 8) / 8388608.0f - 1.0f) * 0.05f;
}
