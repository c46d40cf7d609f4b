// An operator new that can fail under AddressSanitizer, whose malloc cannot. Include it in one
// source of a program. Under Clang's ThreadSanitizer, operator new cannot be replaced.

#pragma once

#include "live_allocations.hpp"

#ifdef LADE_SANITIZED_ADDRESSES

#include <cstddef>
#include <cstdlib>
#include <new>

static void* failing_new(std::size_t bytes, std::size_t alignment) noexcept {
  if (lade::test::allocation_fails()) return nullptr;
  auto size = (bytes + alignment - 1) / alignment * alignment;
  return std::aligned_alloc(alignment, size ? size : alignment);
}

static void* require_new(void* memory) { return memory ? memory : throw std::bad_alloc(); }

static constexpr std::size_t usual_alignment = alignof(std::max_align_t);

void* operator new(std::size_t bytes) { return require_new(failing_new(bytes, usual_alignment)); }
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return failing_new(bytes, usual_alignment);
}
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return require_new(failing_new(bytes, static_cast<std::size_t>(alignment)));
}
void* operator new(std::size_t bytes, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return failing_new(bytes, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }

#endif
