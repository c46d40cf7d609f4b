// A test fails that leaves more live allocations than it found: a coroutine frame, a buffer, a
// waiting item. Sanitizers bring an allocator and a leak check of their own.

#include "live_allocations.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <new>
#include <string_view>
#include <thread>

static std::atomic<long> live_allocations = 0;
static std::atomic<long> live_blocks = 0;  // those too that C libraries have
static std::atomic<std::uint64_t> made_allocations = 0;
static std::atomic<std::int64_t> until_failure = -1;  // allocations; less than 0: none fails

namespace lade::test {

std::uint64_t allocations_made() noexcept { return made_allocations; }
long blocks_in_use() noexcept { return live_blocks; }

failing_allocation::failing_allocation(std::uint64_t after) noexcept : after_(after) {
  until_failure = static_cast<std::int64_t>(after);
}
void failing_allocation::end() noexcept { until_failure = -1; }
bool failing_allocation::has_failed() const noexcept { return until_failure < 0; }
std::uint64_t failing_allocation::passed() const noexcept {
  return after_ - static_cast<std::uint64_t>(std::max<std::int64_t>(until_failure, 0));
}

bool allocation_fails() noexcept {
  if (until_failure < 0 || until_failure.fetch_sub(1) != 0) return false;
  errno = ENOMEM;
  return true;
}

}  // namespace lade::test

#if !defined(LADE_SANITIZED_ADDRESSES) && !defined(LADE_SANITIZED_THREADS)

using lade::test::allocation_fails;

static void* count_block(void* block) noexcept {
  if (block) live_blocks.fetch_add(1, std::memory_order_relaxed);
  return block;
}

// What C libraries allocate fails too.
extern "C" {
void* __libc_malloc(std::size_t bytes);
void* __libc_calloc(std::size_t count, std::size_t bytes);
void* __libc_realloc(void* memory, std::size_t bytes);
void* __libc_memalign(std::size_t alignment, std::size_t bytes);
void __libc_free(void* memory);

void* malloc(std::size_t bytes) {
  return allocation_fails() ? nullptr : count_block(__libc_malloc(bytes));
}
void* calloc(std::size_t count, std::size_t bytes) {
  return allocation_fails() ? nullptr : count_block(__libc_calloc(count, bytes));
}
void* realloc(void* memory, std::size_t bytes) {
  if (!memory) return malloc(bytes);
  if (allocation_fails()) return nullptr;
  void* moved = __libc_realloc(memory, bytes);
  if (!moved && bytes == 0) live_blocks.fetch_sub(1, std::memory_order_relaxed);
  return moved;
}
void* memalign(std::size_t alignment, std::size_t bytes) {
  return count_block(__libc_memalign(alignment, bytes));
}
void* aligned_alloc(std::size_t alignment, std::size_t bytes) { return memalign(alignment, bytes); }
int posix_memalign(void** memory, std::size_t alignment, std::size_t bytes) {
  *memory = allocation_fails() ? nullptr : memalign(alignment, bytes);
  return *memory ? 0 : ENOMEM;
}
void free(void* memory) {
  if (memory) live_blocks.fetch_sub(1, std::memory_order_relaxed);
  __libc_free(memory);
}
}

static void* count_new(std::size_t bytes, std::size_t alignment) {
  made_allocations.fetch_add(1, std::memory_order_relaxed);
  if (allocation_fails()) throw std::bad_alloc();
  // aligned_alloc requires a multiple of the alignment. A size of 0 still returns memory.
  auto size = (bytes + alignment - 1) / alignment * alignment;
  void* memory = std::aligned_alloc(alignment, size ? size : alignment);
  if (!memory) throw std::bad_alloc();
  live_allocations.fetch_add(1, std::memory_order_relaxed);
  return memory;
}

static void count_delete(void* memory) noexcept {
  if (!memory) return;
  live_allocations.fetch_sub(1, std::memory_order_relaxed);
  std::free(memory);
}

void* operator new(std::size_t bytes) { return count_new(bytes, alignof(std::max_align_t)); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return count_new(bytes, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory) noexcept { count_delete(memory); }
void operator delete(void* memory, std::size_t) noexcept { count_delete(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { count_delete(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { count_delete(memory); }

#endif

namespace {

class leak_check : public testing::EmptyTestEventListener {
  static long count() {
    if (lade::test::free_what_is_kept != nullptr) lade::test::free_what_is_kept();
    return live_allocations;
  }

  void OnTestStart(const testing::TestInfo&) override { before_ = count(); }

  void OnTestEnd(const testing::TestInfo& test) override {
    // What GoogleTest notes of a test, or of a process that is to die, it keeps.
    if (std::string_view(test.test_suite_name()).ends_with("DeathTest")) return;
    if (test.result()->total_part_count() > 0 || test.result()->test_property_count() > 0) return;
    wait_for_threads_that_end();
    EXPECT_LE(count() - before_, 0) << "allocations are still live after " << test.name();
  }

  // A detached thread frees its last memory a moment after it has published its result.
  void wait_for_threads_that_end() const {
    constexpr auto now = std::chrono::steady_clock::now;
    auto give_up = now() + std::chrono::seconds(10);
    while (count() > before_ && now() < give_up) std::this_thread::yield();
  }

  long before_ = 0;
};

}  // namespace

// Before the first test. Scoped traces, which print seeds, keep memory of their thread: that is no
// test's doing.
static const bool added = [] {
  SCOPED_TRACE("made");
  testing::UnitTest::GetInstance()->listeners().Append(new leak_check);
  return true;
}();
