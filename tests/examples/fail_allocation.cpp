// Lets allocations of one size fail in a program that is started with this library in LD_PRELOAD:
// of as many bytes as the environment variable FAIL_ALLOCATION_OF says.

#include <cstddef>
#include <cstdlib>
#include <new>

static std::size_t size_that_fails() {
  const char* text = std::getenv("FAIL_ALLOCATION_OF");
  return text ? std::strtoull(text, nullptr, 10) : 0;
}

void* operator new(std::size_t bytes) {
  static const std::size_t fails = size_that_fails();
  void* memory = bytes == fails ? nullptr : std::malloc(bytes ? bytes : 1);
  if (!memory) throw std::bad_alloc();
  return memory;
}

void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
