// Where the memory of buffers comes from: pages of the host, huge pages, pinned memory, memory of a
// device, the allocator of a framework, a region that the program owns.

#pragma once

#include <lade/buffer.hpp>
#include <lade/detail/common/range_allocator.hpp>
#include <lade/device.hpp>

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

namespace lade {

// An allocator. It is given to a runtime (runtime_options::memory), to a stage
// (map_options::memory) or to the batches of a stage (batch_into_options::memory), as a pointer. A
// pool caches what it allocates; see buffer_pool.hpp.
//
// Lifetime: a resource that a std::shared_ptr owns lives as long as a stage, a pool or a buffer
// refers to it. Any other must outlive the pipelines, the runtime and all buffers.
//
// Thread: any, several at a time.
class memory_resource : public std::enable_shared_from_this<memory_resource> {
 public:
  virtual ~memory_resource() = default;

  // Uninitialised memory, not null. `alignment`: a power of two from 64 to 2 MiB. Throws error,
  // such as error(ENOMEM), if there is none; to lade, null means the same.
  virtual void* allocate(std::size_t bytes, std::size_t alignment) = 0;

  // Takes back what allocate() returned for the same arguments.
  virtual void deallocate(void* memory, std::size_t bytes, std::size_t alignment) noexcept = 0;

  // The device of the memory, which tensors in it report.
  virtual device where() const noexcept { return {}; }

  // For errors: "host memory".
  virtual std::string_view name() const noexcept = 0;

  // Whether discard() works. Only then a pool carves several blocks out of one allocation.
  virtual bool can_discard() const noexcept { return false; }

  // Returns whole pages of allocated memory to the system. Their contents are lost, their addresses
  // stay allocated. A pool calls it only if can_discard().
  virtual void discard([[maybe_unused]] void* memory, [[maybe_unused]] std::size_t bytes) noexcept {
  }
};

namespace detail {

// A share in the resource, or, where nobody shares it, a pointer to it. Null for null.
std::shared_ptr<memory_resource> share_of(memory_resource& resource);
std::shared_ptr<memory_resource> share_of(memory_resource* resource);

// Throws error(invalid_argument), "<doing>: ...", if the CPU cannot write the memory of an option
// `memory`. Null is the default, and allowed.
void require_host_accessible(std::string_view doing, const memory_resource* memory);

}  // namespace detail

// Pages of the host, the default of all pools. Allocations of 2 MiB and more are mapped and ask for
// transparent huge pages. Shared by the whole program.
memory_resource& host_memory() noexcept;

// Huge pages of the host, for programs that touch much memory at random. It reserves regions of
// 32 MiB, or of as much as a larger allocation needs, and returns a region when all of it is free.
//
// A region consists of the huge pages that the administrator set aside (vm.nr_hugepages). If too
// few are left, the region consists of ordinary pages, for which transparent huge pages are
// requested, and is counted in `fallback_bytes`.
class huge_page_memory final : public memory_resource {
 public:
  struct statistics {
    std::size_t reserved_bytes;  // of all regions
    std::size_t fallback_bytes;  // of regions without set-aside huge pages
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

  mutable std::mutex mutex_;  // guards all that follows
  detail::range_allocator ranges_;
  std::map<std::byte*, region> regions_;
  statistics statistics_{};
};

// A fixed region: nothing is ever allocated beyond it. The best fitting free range is used, and
// neighbouring free ranges are joined.
//
//   lade::arena batches(lade::buffer(owner, bytes));      // memory of another library
//   lade::arena batches(lade::buffer(256 << 20));         // its own
//
// Allocations that find no range throw error(ENOMEM), naming the arena, the free bytes and the
// largest range. A pool of a limit below the region's size waits instead, but fragmentation may
// still leave no range that is long enough: leave a quarter free.
class arena final : public memory_resource {
 public:
  // Shares the ownership of the region. Throws error(invalid_argument) for an empty one.
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
  detail::range_allocator ranges_;  // guarded by the mutex
};

}  // namespace lade
