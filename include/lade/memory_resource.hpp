// Allocators of the memory of buffers: pages of the host, huge pages, a region of the program, and
// custom ones, such as for pinned memory, a device or a framework.

#pragma once

#include <lade/buffer.hpp>
#include <lade/device.hpp>
#include <lade/support/range_allocator.hpp>

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

namespace lade {

// An allocator. Options refer to it by pointer: of a runtime (runtime_options::memory), of a stage
// (map_options::memory) or of the batches of a stage (batch_into_options::memory). A pool caches
// its memory; see buffer_pool.hpp.
//
// Lifetime: a resource that a std::shared_ptr owns is kept alive by stages, pools and buffers that
// refer to it. Any other resource must outlive the pipelines, the runtime and all buffers.
//
// Thread: any, several at a time.
class memory_resource : public std::enable_shared_from_this<memory_resource> {
 public:
  virtual ~memory_resource() = default;

  // Returns uninitialised memory, not null. `alignment`: a power of two from 64 to 2 MiB. Throws
  // error, such as error(ENOMEM), if there is none. A return value of null counts as that error.
  virtual void* allocate(std::size_t bytes, std::size_t alignment) = 0;

  // Frees memory that allocate() returned for the same arguments.
  virtual void deallocate(void* memory, std::size_t bytes, std::size_t alignment) noexcept = 0;

  // The device of the memory. Tensors in the memory report it.
  virtual device where() const noexcept { return {}; }

  // The name in errors, such as "host memory".
  virtual std::string_view name() const noexcept = 0;

  // Whether discard() works. Only if it does, a pool carves several blocks out of one allocation.
  virtual bool can_discard() const noexcept { return false; }

  // Returns whole pages of allocated memory to the system. Their contents are lost; their addresses
  // remain allocated. A pool calls it only if can_discard().
  virtual void discard([[maybe_unused]] void* memory, [[maybe_unused]] std::size_t bytes) noexcept {
  }
};

// For classes that keep a resource passed by reference. Shares the ownership of the resource, or,
// if no shared_ptr owns it, refers to it without owning. Null for null.
std::shared_ptr<memory_resource> share_of(memory_resource& resource);
std::shared_ptr<memory_resource> share_of(memory_resource* resource);

// For stages with an option `memory`, whose value it is. Throws error(invalid_argument), which
// begins with `doing`, if the CPU cannot write to that memory. Null, the default, is allowed.
void require_host_accessible(std::string_view doing, const memory_resource* memory);

// Pages of the host, the default of all pools; one object for the whole program. Allocations of 2
// MiB and more are mapped and request transparent huge pages.
memory_resource& host_memory() noexcept;

// Huge pages of the host, for programs that access much memory at random. Reserves regions of 32
// MiB, or larger ones for larger allocations. Returns a region when all of it is free.
//
// A region consists of huge pages that the administrator set aside (vm.nr_hugepages). If too few
// are left, it consists of ordinary pages, for which transparent huge pages are requested, and
// counts to `fallback_bytes`.
class huge_page_memory final : public memory_resource {
 public:
  struct statistics {
    std::size_t reserved_bytes;  // bytes of all regions
    std::size_t fallback_bytes;  // bytes of regions without set-aside huge pages
  };

  huge_page_memory() = default;
  huge_page_memory(const huge_page_memory&) = delete;
  ~huge_page_memory() override;

  void* allocate(std::size_t bytes, std::size_t alignment) override;
  void deallocate(void* memory, std::size_t bytes, std::size_t alignment) noexcept override;
  std::string_view name() const noexcept override { return "huge pages"; }

  statistics stats() const;

 private:
  struct region {
    std::size_t bytes;
    bool is_fallback;
  };

  void add_region(std::size_t bytes);

  mutable std::mutex mutex_;  // guards all members below
  support::range_allocator ranges_;
  std::map<std::byte*, region> regions_;
  statistics statistics_{};
};

// Allocates from a fixed region, by best fit, and never beyond it. Adjacent free ranges are merged.
//
//   lade::arena batches(lade::buffer(owner, bytes));      // memory of another library
//   lade::arena batches(lade::buffer(256 << 20));         // memory of the arena
//
// An allocation that fits no free range throws error(ENOMEM), which names the arena, the free bytes
// and the largest range. A pool whose limit is below the region's size waits instead. Fragmentation
// may still leave no range that is long enough: leave a quarter of the region free.
class arena final : public memory_resource {
 public:
  // Shares the ownership of the region. Throws error(invalid_argument) if it is empty.
  explicit arena(buffer region, std::string name = "arena");

  void* allocate(std::size_t bytes, std::size_t alignment) override;
  void deallocate(void* memory, std::size_t bytes, std::size_t alignment) noexcept override;
  device where() const noexcept override { return region_.where(); }
  std::string_view name() const noexcept override { return name_; }

  std::size_t free_bytes() const;

 private:
  buffer region_;
  std::string name_;
  mutable std::mutex mutex_;
  support::range_allocator ranges_;  // guarded by the mutex
};

}  // namespace lade
