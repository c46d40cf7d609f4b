#include <lade/cuda/memory.hpp>
#include <lade/error.hpp>

#include <cstdint>
#include <mutex>
#include <string>
#include <system_error>
#include <utility>

#include <fmt/format.h>

namespace lade::cuda {

std::size_t detail::aligned_addresses::all_bytes(std::size_t bytes, std::size_t alignment) {
  if (bytes > PTRDIFF_MAX)
    throw error(std::make_error_code(std::errc::not_enough_memory),
                fmt::format("allocate {} bytes", bytes));
  return bytes + extra_bytes(alignment);
}

void* detail::aligned_addresses::align(void* memory, std::size_t bytes, std::size_t alignment) {
  if (extra_bytes(alignment) == 0) return memory;
  auto address = reinterpret_cast<std::uintptr_t>(memory);
  auto* first = static_cast<std::byte*>(memory) + (alignment - address % alignment) % alignment;
  std::lock_guard lock(mutex_);
  allocations_.emplace(first, std::pair(memory, bytes));
  return first;
}

std::pair<void*, std::size_t> detail::aligned_addresses::take(void* aligned, std::size_t bytes,
                                                              std::size_t alignment) noexcept {
  if (extra_bytes(alignment) == 0) return {aligned, bytes};
  std::lock_guard lock(mutex_);
  auto found = allocations_.find(aligned);
  auto allocation = found->second;
  allocations_.erase(found);
  return allocation;
}

}  // namespace lade::cuda
