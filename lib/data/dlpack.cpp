#include <lade/dlpack.hpp>
#include <lade/error.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include <dlpack/dlpack.h>
#include <fmt/format.h>

namespace lade {

static constexpr std::uint8_t dlpack_bool = 6;  // kDLBool, which DLPack has since 0.8

// In the order of element_type.
static constexpr std::array<DLDataType, element_types> dlpack_types{{{dlpack_bool, 8, 1},
                                                                     {kDLUInt, 8, 1},
                                                                     {kDLInt, 8, 1},
                                                                     {kDLUInt, 16, 1},
                                                                     {kDLInt, 16, 1},
                                                                     {kDLUInt, 32, 1},
                                                                     {kDLInt, 32, 1},
                                                                     {kDLUInt, 64, 1},
                                                                     {kDLInt, 64, 1},
                                                                     {kDLFloat, 16, 1},
                                                                     {kDLBfloat, 16, 1},
                                                                     {kDLFloat, 32, 1},
                                                                     {kDLFloat, 64, 1}}};

// In the order of device::kind.
static constexpr std::array<DLDeviceType, 4> dlpack_devices{kDLCPU, kDLCUDA, kDLCUDAHost,
                                                            kDLCUDAManaged};

[[noreturn]] static void refuse_dlpack(errc code, std::string_view why) {
  throw error(code, "import a DLPack tensor", why);
}

static element_type element_type_of(const DLDataType& type) {
  auto found = std::ranges::find_if(dlpack_types, [&](const DLDataType& each) {
    return each.code == type.code && each.bits == type.bits && each.lanes == type.lanes;
  });
  if (found == dlpack_types.end())
    refuse_dlpack(errc::unsupported, fmt::format("elements of type {}, {} bits and {} lanes",
                                                 type.code, type.bits, type.lanes));
  return static_cast<element_type>(found - dlpack_types.begin());
}

static device device_of(const DLDevice& where) {
  auto found = std::ranges::find(dlpack_devices, where.device_type);
  if (found == dlpack_devices.end())
    refuse_dlpack(errc::unsupported, "device type " + std::to_string(where.device_type));
  return {static_cast<device::kind>(found - dlpack_devices.begin()), where.device_id};
}

static dimensions dimensions_of(const std::int64_t* values, int rank) {
  if (rank < 0 || rank > static_cast<int>(dimensions::max_rank))
    refuse_dlpack(errc::unsupported, fmt::format("{} dimensions", rank));
  return dimensions(std::span(values, static_cast<std::size_t>(rank)));
}

// The bytes from the lowest element in memory to the highest. `first`: the element at index 0.
static std::span<std::byte> bytes_of(const tensor_spec& spec, const dimensions& strides,
                                     std::byte* first) {
  if (spec.elements() == 0) return {first, 0};
  std::int64_t lowest = 0;
  std::int64_t highest = 1;
  for (std::size_t i = 0; i < strides.size(); ++i) {
    std::int64_t reach = 0;
    auto& end = strides[i] < 0 ? lowest : highest;
    if (__builtin_mul_overflow(strides[i], spec.shape[i] - 1, &reach) ||
        __builtin_add_overflow(end, reach, &end) || std::abs(end) > INT64_MAX / 16)
      refuse_dlpack(errc::invalid_argument, "strides out of range");
  }
  auto size = static_cast<std::int64_t>(element_bytes(spec.type));
  return {first + lowest * size, static_cast<std::size_t>((highest - lowest) * size)};
}

// An exported tensor, and the arrays that its DLManagedTensor points to.
struct exported_tensor {
  explicit exported_tensor(tensor exported) : shared(std::move(exported)) {
    std::ranges::copy(shared.shape(), shape.begin());
    std::ranges::copy(shared.strides(), strides.begin());
    auto& described = managed.dl_tensor;
    described.data = shared.bytes();
    described.device = {dlpack_devices[static_cast<std::size_t>(shared.where().type)],
                        shared.where().index};
    described.ndim = static_cast<int>(shared.rank());
    described.dtype = dlpack_types[static_cast<std::size_t>(shared.type())];
    described.shape = shape.data();
    described.strides = strides.data();
    managed.manager_ctx = this;
    managed.deleter = [](DLManagedTensor* self) {
      delete static_cast<exported_tensor*>(self->manager_ctx);
    };
  }

  tensor shared;
  std::array<std::int64_t, dimensions::max_rank> shape{};
  std::array<std::int64_t, dimensions::max_rank> strides{};
  DLManagedTensor managed{};
};

DLManagedTensor* to_dlpack(tensor shared) {
  return &(new exported_tensor(std::move(shared)))->managed;
}

tensor from_dlpack(DLManagedTensor* foreign) {
  auto& described = foreign->dl_tensor;
  tensor_spec spec{element_type_of(described.dtype),
                   dimensions_of(described.shape, described.ndim)};
  (void)spec.bytes();  // throws if the extents are invalid
  auto strides = described.strides ? dimensions_of(described.strides, described.ndim)
                                   : contiguous_strides(spec.shape);
  auto* first = static_cast<std::byte*>(described.data) + described.byte_offset;
  auto bytes = bytes_of(spec, strides, first);
  auto where = device_of(described.device);
  tensor borrowed(spec, strides, buffer({}, bytes, where), first);

  std::shared_ptr<const void> owner(foreign, [](DLManagedTensor* last) {
    if (last->deleter) last->deleter(last);
  });
  return {spec, strides, buffer(std::move(owner), bytes, where), first};
}

}  // namespace lade
