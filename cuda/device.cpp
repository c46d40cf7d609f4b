#include "check.hpp"
#include "runtime_api.hpp"

#include <lade/cuda/device.hpp>
#include <lade/cuda/error.hpp>
#include <lade/error.hpp>
#include <lade/sync_wait.hpp>

#include <string_view>

#include <fmt/format.h>

namespace lade::cuda {

static cudaError_t count_devices(int& count) noexcept {
  auto result = api().get_device_count(&count);
  if (result != cudaSuccess) {
    (void)api().get_last_error();
    count = 0;
  }
  return result;
}

int device::count() noexcept {
  int count = 0;
  (void)count_devices(count);
  return count;
}

std::string device::why_none() {
  int count = 0;
  auto result = count_devices(count);
  if (count > 0) return {};
  return category().message(result == cudaSuccess ? cudaErrorNoDevice : result);
}

device::device(int index) : index_(index) {
  auto doing = fmt::format("use GPU {}", index);
  int number = 0;
  check(count_devices(number), doing);
  if (number == 0) check(cudaErrorNoDevice, doing);
  if (index < 0 || index >= number)
    throw error(errc::invalid_argument, doing, fmt::format("there are {}", number));
}

device device::current() {
  int index = 0;
  check(api().get_device(&index), "ask for the current GPU");
  return device(index);
}

std::string device::name() const {
  cudaDeviceProp properties{};
  check(api().get_device_properties(&properties, index_), "ask for the name of a GPU");
  return properties.name;
}

static int attribute_of(int device, cudaDeviceAttr attribute, std::string_view doing) {
  int value = 0;
  check(api().device_get_attribute(&value, attribute, device), doing);
  return value;
}

device::version device::compute_capability() const {
  constexpr auto doing = "ask for the compute capability of a GPU";
  return {attribute_of(index_, cudaDevAttrComputeCapabilityMajor, doing),
          attribute_of(index_, cudaDevAttrComputeCapabilityMinor, doing)};
}

device::memory_state device::memory() const {
  current_device on(*this);
  memory_state state{};
  check(api().mem_get_info(&state.free_bytes, &state.total_bytes), "ask for the memory of a GPU");
  return state;
}

std::optional<unsigned> device::numa_node() const {
  int node = attribute_of(index_, cudaDevAttrHostNumaId, "ask for the NUMA node of a GPU");
  if (node < 0) return std::nullopt;
  return static_cast<unsigned>(node);
}

void device::synchronize() const {
  require_blocking_allowed();
  current_device on(*this);
  check(api().device_synchronize(), fmt::format("wait for GPU {}", index_));
}

current_device::current_device(device on) {
  check(api().get_device(&before_), "ask for the current GPU");
  changed_ = before_ != on.index();
  if (changed_) check(api().set_device(on.index()), fmt::format("use GPU {}", on.index()));
}

current_device::~current_device() {
  if (changed_) (void)api().set_device(before_);
}

}  // namespace lade::cuda
