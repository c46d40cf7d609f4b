// A small residual network: 64 x 64 pixels to classes.

#pragma once

#include <torch/torch.h>

#include <cstdint>

struct residual_block_impl : torch::nn::Module {
  residual_block_impl(std::int64_t in, std::int64_t out)
      : first(register_module("first", convolution(in, out, 3, 2))),
        first_norm(register_module("first_norm", torch::nn::BatchNorm2d(out))),
        second(register_module("second", convolution(out, out, 3, 1))),
        second_norm(register_module("second_norm", torch::nn::BatchNorm2d(out))),
        shortcut(register_module("shortcut", convolution(in, out, 1, 2))) {}

  static torch::nn::Conv2d convolution(std::int64_t in, std::int64_t out, std::int64_t size,
                                       std::int64_t stride) {
    return torch::nn::Conv2d(
        torch::nn::Conv2dOptions(in, out, size).stride(stride).padding(size / 2).bias(false));
  }

  torch::Tensor forward(const torch::Tensor& in) {
    auto out = torch::relu(first_norm(first(in)));
    return torch::relu(second_norm(second(out)) + shortcut(in));
  }

  torch::nn::Conv2d first;
  torch::nn::BatchNorm2d first_norm;
  torch::nn::Conv2d second;
  torch::nn::BatchNorm2d second_norm;
  torch::nn::Conv2d shortcut;
};
TORCH_MODULE_IMPL(residual_block, residual_block_impl);

// f32 [N, 3, 64, 64] to f32 [N, classes].
inline torch::nn::Sequential make_network(std::int64_t classes) {
  return torch::nn::Sequential(
      torch::nn::Conv2d(torch::nn::Conv2dOptions(3, 32, 3).stride(2).padding(1)), torch::nn::ReLU(),
      residual_block(32, 64), residual_block(64, 128), torch::nn::AdaptiveAvgPool2d(1),
      torch::nn::Flatten(), torch::nn::Dropout(0.2), torch::nn::Linear(128, classes));
}
