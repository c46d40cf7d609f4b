// Tensors shared between lade and libtorch, without copies. To be copied into any program.

#pragma once

#include <lade/error.hpp>
#include <lade/tensor.hpp>

#include <torch/torch.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace lade_torch {

// The torch type of an element type. Throws lade::error(unsupported) for u16, u32 and u64 with
// libtorch before 2.3, which has no such types.
torch::ScalarType scalar_type(lade::element_type type);

// The element type of a torch type. Throws lade::error(unsupported) for complex, quantized and
// 8-bit floating-point types.
lade::element_type element_type(torch::ScalarType type);

// A torch tensor over the memory of a lade tensor: same type, shape, strides and device. The torch
// tensor, its views and the graph that refer to it own a share of the memory, until the last of
// them is destroyed, on any thread. Writing to one of the two tensors changes the other; a batch
// that others use too must not be written to.
//
// The result requires no gradient. Throws lade::error(unsupported) for negative strides, which
// libtorch does not have, and for types as scalar_type() does. Memory on a device must be ready for
// torch's current stream; nothing here waits for a stream.
torch::Tensor to_torch(const lade::tensor& shared);

// A lade tensor over the memory of a torch tensor, which it shares in the same way. The result has
// no gradient. A CPU tensor in pinned memory has the device cuda_host.
//
// Throws lade::error(unsupported) for types as element_type() does, for other devices than the CPU
// and CUDA, for sparse tensors, for views that negate or conjugate lazily, and for more than
// dimensions::max_rank dimensions. Throws lade::error(invalid_argument) for an undefined tensor.
lade::tensor from_torch(const torch::Tensor& shared);

namespace detail {

[[noreturn]] inline void refuse(lade::errc code, std::string_view doing, std::string_view reason) {
  throw lade::error(code, doing, reason);
}

inline torch::Device device_of(const lade::device& device) {
  switch (device.type) {
    case lade::device::kind::cpu:
    case lade::device::kind::cuda_host: return torch::kCPU;
    case lade::device::kind::cuda:
    case lade::device::kind::cuda_managed:
      return {torch::kCUDA, static_cast<torch::DeviceIndex>(device.index)};
    default: refuse(lade::errc::unsupported, "share a tensor with torch", "its device");
  }
}

inline lade::device device_of(const torch::Tensor& shared) {
  using enum lade::device::kind;
  if (shared.is_cuda()) return {cuda, static_cast<int>(shared.get_device())};
  if (!shared.device().is_cpu())
    refuse(lade::errc::unsupported, "share a tensor of torch", "device " + shared.device().str());
  return {shared.is_pinned() ? cuda_host : cpu, 0};
}

inline torch::IntArrayRef array_of(const lade::dimensions& extents) {
  return {extents.begin(), extents.size()};
}

inline lade::dimensions dimensions_of(torch::IntArrayRef extents) {
  if (extents.size() > lade::dimensions::max_rank)
    refuse(lade::errc::unsupported, "share a tensor of torch",
           std::to_string(extents.size()) + " dimensions");
  return lade::dimensions(std::span(extents.data(), extents.size()));
}

// The number of elements from the first to the last one in memory. Strides of torch are not
// negative.
inline std::int64_t reach_of(const torch::Tensor& shared) {
  if (shared.numel() == 0) return 0;
  std::int64_t last = 0;
  for (std::int64_t i = 0; i < shared.dim(); ++i) last += shared.stride(i) * (shared.size(i) - 1);
  return last + 1;
}

}  // namespace detail

inline torch::ScalarType scalar_type(lade::element_type type) {
  switch (type) {
    case lade::element_type::boolean: return torch::kBool;
    case lade::element_type::u8: return torch::kUInt8;
    case lade::element_type::i8: return torch::kInt8;
    case lade::element_type::i16: return torch::kInt16;
    case lade::element_type::i32: return torch::kInt32;
    case lade::element_type::i64: return torch::kInt64;
    case lade::element_type::f16: return torch::kFloat16;
    case lade::element_type::bf16: return torch::kBFloat16;
    case lade::element_type::f32: return torch::kFloat32;
    case lade::element_type::f64: return torch::kFloat64;
#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 3)
    case lade::element_type::u16: return torch::ScalarType::UInt16;
    case lade::element_type::u32: return torch::ScalarType::UInt32;
    case lade::element_type::u64: return torch::ScalarType::UInt64;
#endif
    default: break;
  }
  detail::refuse(lade::errc::unsupported, "share a tensor with torch",
                 "elements of type " + std::string(lade::name(type)));
}

inline lade::element_type element_type(torch::ScalarType type) {
  switch (type) {
    case torch::kBool: return lade::element_type::boolean;
    case torch::kUInt8: return lade::element_type::u8;
    case torch::kInt8: return lade::element_type::i8;
    case torch::kInt16: return lade::element_type::i16;
    case torch::kInt32: return lade::element_type::i32;
    case torch::kInt64: return lade::element_type::i64;
    case torch::kFloat16: return lade::element_type::f16;
    case torch::kBFloat16: return lade::element_type::bf16;
    case torch::kFloat32: return lade::element_type::f32;
    case torch::kFloat64: return lade::element_type::f64;
#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 3)
    case torch::ScalarType::UInt16: return lade::element_type::u16;
    case torch::ScalarType::UInt32: return lade::element_type::u32;
    case torch::ScalarType::UInt64: return lade::element_type::u64;
#endif
    default: break;
  }
  detail::refuse(lade::errc::unsupported, "share a tensor of torch",
                 std::string("elements of type ") + torch::toString(type));
}

inline torch::Tensor to_torch(const lade::tensor& shared) {
  for (auto stride : shared.strides())
    if (stride < 0)
      detail::refuse(lade::errc::unsupported, "share a tensor with torch",
                     "strides " + lade::to_string(shared.strides()));
  const auto options =
      torch::dtype(scalar_type(shared.type())).device(detail::device_of(shared.where()));
  return torch::from_blob(
      shared.bytes(), detail::array_of(shared.shape()), detail::array_of(shared.strides()),
      [share = shared](void*) {}, options);
}

inline lade::tensor from_torch(const torch::Tensor& shared) {
  const std::string_view doing = "share a tensor of torch";
  if (!shared.defined()) detail::refuse(lade::errc::invalid_argument, doing, "it is undefined");
  if (shared.layout() != torch::kStrided)
    detail::refuse(lade::errc::unsupported, doing, "a sparse layout");
  if (shared.is_neg() || shared.is_conj())
    detail::refuse(lade::errc::unsupported, doing, "a view that negates or conjugates lazily");
  lade::tensor_spec spec{element_type(shared.scalar_type()), detail::dimensions_of(shared.sizes())};
  auto owner = std::make_shared<torch::Tensor>(shared.detach());
  auto* first = static_cast<std::byte*>(owner->data_ptr());
  const auto bytes = static_cast<std::size_t>(detail::reach_of(shared)) * shared.element_size();
  const auto device = detail::device_of(shared);
  return {spec, detail::dimensions_of(shared.strides()),
          lade::buffer(std::move(owner), {first, bytes}, device), first};
}

}  // namespace lade_torch
