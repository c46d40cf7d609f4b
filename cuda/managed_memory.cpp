#include "capture_guard.hpp"
#include "check.hpp"
#include "runtime_api.hpp"

#include <lade/cuda/memory.hpp>
#include <lade/error.hpp>

#include <fmt/format.h>

namespace lade::cuda {

managed_memory::managed_memory(device on) : on_(on) {
  constexpr auto doing = "use managed memory";
  int is_concurrent = 0;
  check(api().device_get_attribute(&is_concurrent, cudaDevAttrConcurrentManagedAccess, on.index()),
        doing);
  if (!is_concurrent)
    throw error(errc::unsupported, doing,
                fmt::format("the CPU cannot use it while kernels run on GPU {}", on.index()));
}

void* managed_memory::allocate(std::size_t bytes, std::size_t alignment) {
  current_device current(on_);
  capture_guard beside_captures;
  auto all = addresses_.all_bytes(bytes, alignment);
  void* memory = nullptr;
  check(api().malloc_managed(&memory, all, cudaMemAttachGlobal),
        fmt::format("allocate {} bytes of managed memory", bytes));
  try {
    auto* aligned = addresses_.align(memory, all, alignment);
    used_bytes_ += bytes;
    return aligned;
  } catch (...) {
    (void)api().free_memory(memory);
    throw;
  }
}

void managed_memory::deallocate(void* memory, std::size_t bytes, std::size_t alignment) noexcept {
  capture_guard beside_captures;
  (void)api().free_memory(addresses_.take(memory, bytes, alignment).first);
  used_bytes_ -= bytes;
}

}  // namespace lade::cuda
