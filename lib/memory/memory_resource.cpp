#include "block_store.hpp"

#include <lade/error.hpp>
#include <lade/memory_resource.hpp>
#include <lade/support/require.hpp>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <limits>
#include <new>
#include <utility>

#include <fmt/format.h>
#include <sys/mman.h>

namespace lade {

static constexpr std::size_t huge_page = std::size_t{2} << 20;

std::shared_ptr<memory_resource> share_of(memory_resource& resource) {
  if (auto shared = resource.weak_from_this().lock()) return shared;
  return {std::shared_ptr<void>(), &resource};
}

std::shared_ptr<memory_resource> share_of(memory_resource* resource) {
  return resource ? share_of(*resource) : nullptr;
}

void require_host_accessible(std::string_view doing, const memory_resource* memory) {
  if (!memory || memory->where().is_host_accessible()) return;
  support::refuse_value(doing, "memory",
                        fmt::format("{} ({})", memory->name(), to_string(memory->where())),
                        "memory that the CPU can write");
}

static void* map_pages(std::size_t bytes, int flags) noexcept {
  flags |= MAP_PRIVATE | MAP_ANONYMOUS;
  auto* mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
  return mapped == MAP_FAILED ? nullptr : mapped;
}

// Maps a huge page more than needed, and unmaps the bytes before and after the aligned part.
static void* map_aligned_pages(std::size_t bytes) {
  if (bytes > PTRDIFF_MAX) detail::raise_no_memory(bytes);
  auto* first = static_cast<std::byte*>(map_pages(bytes + huge_page, 0));
  if (!first) detail::raise_no_memory(bytes);
  auto before = (huge_page - reinterpret_cast<std::uintptr_t>(first) % huge_page) % huge_page;
  if (before > 0) (void)munmap(first, before);
  (void)munmap(first + before + bytes, huge_page - before);
  (void)madvise(first + before, bytes, MADV_HUGEPAGE);
  return first + before;
}

// Maps large allocations, because malloc would keep up to 64 MiB of freed memory for each thread.
class host_resource final : public memory_resource {
 public:
  void* allocate(std::size_t bytes, std::size_t alignment) override {
    if (bytes >= huge_page) return map_aligned_pages(bytes);
    auto* memory = ::operator new(bytes, std::align_val_t(alignment), std::nothrow);
    if (!memory) detail::raise_no_memory(bytes);
    return memory;
  }
  void deallocate(void* memory, std::size_t bytes, std::size_t alignment) noexcept override {
    if (bytes >= huge_page)
      (void)munmap(memory, bytes);
    else
      ::operator delete(memory, std::align_val_t(alignment));
  }
  std::string_view name() const noexcept override { return "host memory"; }
  bool can_discard() const noexcept override { return true; }
  void discard(void* memory, std::size_t bytes) noexcept override {
    (void)madvise(memory, bytes, MADV_DONTNEED);
  }
};

memory_resource& host_memory() noexcept {
  static host_resource instance;
  return instance;
}

huge_page_memory::~huge_page_memory() {
  for (auto& [first, mapped] : regions_) (void)munmap(first, mapped.bytes);
}

void* huge_page_memory::allocate(std::size_t bytes, std::size_t alignment) {
  std::lock_guard lock(mutex_);
  if (auto* found = ranges_.allocate(bytes, alignment)) return found;
  add_region(bytes);
  return ranges_.allocate(bytes, alignment);
}

// Adds a region of at least `bytes`, aligned to a huge page.
void huge_page_memory::add_region(std::size_t bytes) {
  constexpr std::size_t least = std::size_t{32} << 20;
  if (bytes > PTRDIFF_MAX) detail::raise_no_memory(bytes);
  bytes = std::max(least, (bytes + huge_page - 1) / huge_page * huge_page);
  constexpr int of_2_mib = 21 << MAP_HUGE_SHIFT;
  auto* mapped = map_pages(bytes, MAP_HUGETLB | of_2_mib);
  bool is_fallback = !mapped;
  if (is_fallback) mapped = map_aligned_pages(bytes);
  auto* first = static_cast<std::byte*>(mapped);
  try {
    regions_.emplace(first, region{bytes, is_fallback});
    ranges_.add({first, bytes});
  } catch (...) {
    regions_.erase(first);
    (void)munmap(mapped, bytes);
    throw;
  }
  statistics_.reserved_bytes += bytes;
  if (is_fallback) statistics_.fallback_bytes += bytes;
}

void huge_page_memory::deallocate(void* memory, std::size_t, std::size_t) noexcept {
  std::lock_guard lock(mutex_);
  auto* freed = ranges_.deallocate(static_cast<std::byte*>(memory));
  if (!freed) return;
  ranges_.remove(freed);
  auto found = regions_.find(freed);
  auto [bytes, is_fallback] = found->second;
  (void)munmap(freed, bytes);
  regions_.erase(found);
  statistics_.reserved_bytes -= bytes;
  if (is_fallback) statistics_.fallback_bytes -= bytes;
}

huge_page_memory::statistics huge_page_memory::stats() const {
  std::lock_guard lock(mutex_);
  return statistics_;
}

arena::arena(buffer region, std::string name) : region_(std::move(region)), name_(std::move(name)) {
  if (region_.empty()) throw error(errc::invalid_argument, "make " + name_, "the region is empty");
  ranges_.add(region_.bytes());
}

void* arena::allocate(std::size_t bytes, std::size_t alignment) {
  std::lock_guard lock(mutex_);
  if (auto* found = ranges_.allocate(bytes, alignment)) return found;
  throw error(std::make_error_code(std::errc::not_enough_memory),
              fmt::format("allocate {} bytes of {}", bytes, name_),
              fmt::format("{} of {} bytes are free, {} in one piece", ranges_.free_bytes(),
                          region_.size(), ranges_.largest_range()));
}

void arena::deallocate(void* memory, std::size_t, std::size_t) noexcept {
  std::lock_guard lock(mutex_);
  ranges_.deallocate(static_cast<std::byte*>(memory));
}

std::size_t arena::free_bytes() const {
  std::lock_guard lock(mutex_);
  return ranges_.free_bytes();
}

}  // namespace lade
