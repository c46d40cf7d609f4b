#include "capture_guard.hpp"
#include "check.hpp"
#include "runtime_api.hpp"

#include <lade/cuda/memory.hpp>
#include <lade/error.hpp>

#include <cstdint>
#include <limits>
#include <string>
#include <system_error>
#include <tuple>

#include <fmt/format.h>

namespace lade::cuda {

void* device_resource::allocate(std::size_t bytes, const stream& order) {
  auto* memory = do_allocate(bytes, order);
  if (memory || bytes == 0) return memory;
  throw error(std::make_error_code(std::errc::not_enough_memory),
              fmt::format("allocate {} bytes of {}", bytes, name()), "the resource returned null");
}

void* device_resource::allocate(std::size_t bytes, std::size_t alignment) {
  auto all = addresses_.all_bytes(bytes, alignment);
  auto* memory = allocate(all, own_);
  try {
    current_device current(on_);
    capture_guard beside_captures;
    check(api().stream_synchronize(own_.handle()), "allocate memory of a GPU");
    return addresses_.align(memory, all, alignment);
  } catch (...) {
    do_deallocate(memory, all, own_);
    throw;
  }
}

void device_resource::deallocate(void* memory, std::size_t bytes, std::size_t alignment) noexcept {
  std::tie(memory, bytes) = addresses_.take(memory, bytes, alignment);
  do_deallocate(memory, bytes, own_);
}

static cudaMemPool_t default_pool(device on) {
  cudaMemPool_t pool = nullptr;
  check(api().get_default_pool(&pool, on.index()), "use the memory pool of a GPU");
  return pool;
}

device_memory::device_memory(device on, const device_memory_options& options)
    : device_resource(on) {
  constexpr auto doing = "use the memory pool of a GPU";
  auto pool = default_pool(on);
  std::uint64_t keep = 0;
  check(api().pool_get_attribute(pool, cudaMemPoolAttrReleaseThreshold, &keep), doing);
  if (keep != 0 && !options.keep_bytes) return;  // the program has set it
  keep = options.keep_bytes.value_or(std::numeric_limits<std::uint64_t>::max());
  check(api().pool_set_attribute(pool, cudaMemPoolAttrReleaseThreshold, &keep), doing);
}

void device_memory::trim() {
  capture_guard beside_captures;
  check(api().pool_trim(default_pool(on()), 0), "trim a memory pool");
}

void* device_memory::do_allocate(std::size_t bytes, const stream& order) {
  current_device current(on());
  void* memory = nullptr;
  check(api().malloc_async(&memory, bytes, order.handle()),
        fmt::format("allocate {} bytes of GPU {}", bytes, on().index()));
  used_bytes_ += bytes;
  return memory;
}

// After a failure of the device, no memory can be freed.
void device_memory::do_deallocate(void* memory, std::size_t bytes, const stream& order) noexcept {
  used_bytes_ -= bytes;
  try {
    current_device current(on());
    check(api().free_async(memory, order.handle()), "free memory of a GPU");
  } catch (const error&) {}
}

}  // namespace lade::cuda
