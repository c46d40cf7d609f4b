#include "../../media/freed_memory.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdlib>
#include <fstream>
#include <thread>
#include <vector>

#include <malloc.h>
#include <unistd.h>

namespace lade::detail::freed_memory_test {

static std::size_t resident_bytes() {
  std::size_t all = 0;
  std::size_t resident = 0;
  std::ifstream("/proc/self/statm") >> all >> resident;
  return resident * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

// Written, which no compiler leaves out.
static void* touched(void* memory, std::size_t bytes) {
  auto* first = static_cast<volatile char*>(memory);
  for (std::size_t i = 0; i < bytes; i += 1024) first[i] = 1;
  return memory;
}

// In a thread, whose arena does not shrink as long as something lies at its end.
TEST(FreedMemory, OfAThreadGoesBackToTheSystem) {
  if (mallinfo2().arena == 0) GTEST_SKIP() << "malloc is not glibc's";
  mallopt(M_PERTURB, 0);  // which Meson sets: malloc would write what has been given back
  constexpr std::size_t count = 256;
  constexpr std::size_t bytes = 100'000;
  std::size_t before = 0;
  std::size_t after = 0;
  std::thread([&] {
    std::vector<void*> taken(count);
    for (auto& each : taken) each = touched(std::malloc(bytes), bytes);
    void* last = touched(std::malloc(bytes), bytes);
    for (auto* each : taken) std::free(each);
    before = resident_bytes();
    give_back_freed(count * bytes);
    after = resident_bytes();
    std::free(last);
  }).join();
  EXPECT_LT(after + count * bytes * 3 / 4, before);
}

}  // namespace lade::detail::freed_memory_test
