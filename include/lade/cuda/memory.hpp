// Memory for GPUs: pinned host memory, managed memory, and memory of a GPU in stream order.

#pragma once

#include <lade/cuda/device.hpp>
#include <lade/cuda/event.hpp>
#include <lade/cuda/stream.hpp>
#include <lade/memory_resource.hpp>
#include <lade/support/range_allocator.hpp>

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lade::cuda {

struct pinned_memory_options {
  std::size_t limit_bytes = std::numeric_limits<std::size_t>::max();  // limit of pinned memory
  std::optional<device> near = {};  // the GPU whose NUMA node holds the memory

  // Bytes that the constructor pins and that stay pinned; at most limit_bytes.
  std::size_t reserve_bytes = 0;
};

// Pinned memory of the host. All GPUs read and write it directly, and copies from it overlap with
// other work.
//
// Regions: if no region has capacity, another region of 32 MiB is pinned, or a larger one for a
// larger allocation. Regions stay pinned until the resource is destroyed. If a new region would
// exceed the limit, free regions are unpinned first, except those of reserve_bytes.
//
// Fallback: an allocation consists of ordinary pages
// - if the driver refuses to pin,
// - at the limit,
// - on a reactor thread without capacity in a region, because pinning blocks for tens of
//   milliseconds.
//
// Copies from ordinary pages are correct, but slower. where() returns the same device for ordinary
// pages, and DLPack exports it. But a kernel that accesses them makes the GPU unusable for the
// process. stats() counts such allocations; refusal() returns the reason.
//
// to_device() uses pinned memory by default. A pinned_memory for a whole runtime also serves
// reactor threads, which read files into it. So reserve as much as the runtime may use:
//
//   auto pinned = std::make_shared<lade::cuda::pinned_memory>(
//       lade::cuda::pinned_memory_options{.reserve_bytes = 4ull << 30});
//   lade::runtime runtime({.memory_bytes = 4ull << 30, .memory = pinned.get()});
//
// Thread: any, concurrently, except a callback of CUDA. Blocking: only if no region has capacity.
//
// Not yet run on a GPU: tested only with a fake driver.
class pinned_memory final : public memory_resource {
 public:
  struct statistics {
    std::size_t pinned_bytes;             // size of all regions
    std::size_t fallback_bytes;           // size of allocations that are not pinned
    std::uint64_t fallbacks;              // number of allocations that were not pinned
    std::uint64_t fallbacks_on_reactors;  // fallbacks on reactor threads, which must not pin
  };

  // Blocks while reserve_bytes are pinned. Throws error(invalid_argument) if they exceed
  // limit_bytes. If the driver refuses to pin them, refusal() returns the reason.
  explicit pinned_memory(const pinned_memory_options& options = {});
  pinned_memory(const pinned_memory&) = delete;
  ~pinned_memory() override;

  void* allocate(std::size_t bytes, std::size_t alignment) override;
  void deallocate(void* memory, std::size_t bytes, std::size_t alignment) noexcept override;
  lade::device where() const noexcept override { return {lade::device::kind::cuda_host, 0}; }
  std::string_view name() const noexcept override { return "pinned memory"; }

  statistics stats() const;

  // The reason of the first allocation that was not pinned; empty if all were pinned.
  std::string refusal() const;

 private:
  struct region {
    std::size_t bytes;
    bool is_free;
    bool is_reserved;
  };
  struct pinning;
  using lock = std::unique_lock<std::mutex>;

  // Called with mutex_ held. Functions with a `held` parameter unlock it while they pin, unpin or
  // wait.
  //
  // How threads cooperate. An allocation takes memory of a region (take). If no region has
  // capacity, it waits if other threads pin regions that suffice for it too (wait_for_others);
  // otherwise it pins a region itself, without the lock (add_region, pinning). Then it tries again.
  // No wake-up is lost, because a thread decides to wait with the mutex held. changed_ is also
  // notified with the mutex held: after each region that was pinned or refused, and after each
  // deallocation.
  std::byte* allocate_pinned(std::size_t bytes, std::size_t alignment, lock& held);
  std::byte* take(std::size_t bytes, std::size_t alignment);
  bool must_not_pin();
  bool wait_for_others(std::size_t needed, lock& held);
  bool make_region(std::size_t needed, lock& held);
  bool add_region(std::size_t bytes, std::size_t needed, lock& held, bool is_reserved = false);
  bool release_free_regions(lock& held);
  void refuse(std::string why);
  void* allocate_fallback(std::size_t bytes, std::size_t alignment);
  std::size_t left_bytes() const noexcept {
    return options_.limit_bytes - statistics_.pinned_bytes - coming_bytes_;
  }
  region& region_of(std::byte* memory) noexcept {
    return std::prev(regions_.upper_bound(memory))->second;
  }

  std::byte* pin(std::size_t bytes, std::string& refusal) const;

  const pinned_memory_options options_;
  mutable std::mutex mutex_;  // guards the members below
  std::condition_variable changed_;
  lade::support::range_allocator ranges_;
  std::map<std::byte*, region> regions_;
  std::map<void*, std::size_t> fallbacks_;  // sizes of allocations that are not pinned
  std::size_t coming_bytes_ = 0;            // size of the regions that threads are pinning
  std::size_t awaited_bytes_ = 0;           // size of the allocations that need these regions
  std::string refusal_;
  statistics statistics_{};
};

namespace detail {

// Addresses with a larger alignment than that of CUDA's allocations. Thread: any.
class aligned_addresses {
 public:
  // Returns the bytes to allocate. Throws error(not_enough_memory) if `bytes` exceeds PTRDIFF_MAX.
  static std::size_t all_bytes(std::size_t bytes, std::size_t alignment);

  // Returns an aligned address in an allocation of that many bytes, the extra bytes included.
  // Throws std::bad_alloc.
  void* align(void* memory, std::size_t bytes, std::size_t alignment);

  // Returns the allocation of such an address, and its size. Other addresses are returned
  // unchanged.
  std::pair<void*, std::size_t> take(void* aligned, std::size_t bytes,
                                     std::size_t alignment) noexcept;

 private:
  static constexpr std::size_t given = 256;

  static std::size_t extra_bytes(std::size_t alignment) noexcept {
    return alignment > given ? alignment : 0;
  }

  std::mutex mutex_;
  std::map<void*, std::pair<void*, std::size_t>> allocations_;  // guarded by the mutex
};

}  // namespace detail

// Memory that the CPU and GPUs access at the same addresses. The driver moves it between them
// (cudaMallocManaged). Use it on machines whose CPU and GPU share their memory: there nothing is
// moved, and a trainer reads batches where batch_into() wrote them.
//
//   auto managed = std::make_shared<lade::cuda::managed_memory>(lade::cuda::device(0));
//   auto batches = samples | lade::batch_into(writer, {.size = 256, .memory = managed.get()});
//
// Lifetime: a batch must live until the GPU has finished reading it.
//
// Blocking: allocate() may block, and deallocate() waits for the GPU. Use the resource for stages,
// which keep their memory in a pool, not for a whole runtime, whose reactors must not block.
//
// Thread: any, concurrently, except a callback of CUDA.
//
// Not yet run on a GPU: tested only with a fake driver.
class managed_memory final : public memory_resource {
 public:
  // Throws error(unsupported) if the CPU cannot use such memory while kernels run on the device.
  explicit managed_memory(device on);

  void* allocate(std::size_t bytes, std::size_t alignment) override;
  void deallocate(void* memory, std::size_t bytes, std::size_t alignment) noexcept override;
  lade::device where() const noexcept override {
    return {lade::device::kind::cuda_managed, on_.index()};
  }
  std::string_view name() const noexcept override { return "managed memory"; }

  device on() const noexcept { return on_; }
  std::size_t used_bytes() const noexcept { return used_bytes_; }  // of allocations

 private:
  device on_;
  detail::aligned_addresses addresses_;
  std::atomic<std::size_t> used_bytes_ = 0;
};

// Memory of one GPU, allocated and freed in stream order: allocate() returns at once, and work that
// is queued on that stream afterwards may use the memory. Derive from it to use the caching
// allocator of a framework.
//
// The functions of memory_resource have no stream. When they allocate, they wait for the GPU. When
// they free, the GPU must have finished with the memory.
//
// Thread: any, concurrently, except a callback of CUDA.
class device_resource : public memory_resource {
 public:
  explicit device_resource(device on) : on_(on), own_(on) {}

  // Allocates in the order of the stream `order`, a stream of this device. The alignment is at
  // least 256 bytes. Throws error, also if the derived class returns null.
  void* allocate(std::size_t bytes, const stream& order);

  // Frees the memory after the work that is queued on `order` now. `order` may be another stream
  // than that of the allocation. `bytes`: as it was allocated.
  void deallocate(void* memory, std::size_t bytes, const stream& order) noexcept {
    do_deallocate(memory, bytes, order);
  }

  void* allocate(std::size_t bytes, std::size_t alignment) final;
  void deallocate(void* memory, std::size_t bytes, std::size_t alignment) noexcept final;
  lade::device where() const noexcept final { return {lade::device::kind::cuda, on_.index()}; }

  device on() const noexcept { return on_; }

 private:
  virtual void* do_allocate(std::size_t bytes, const stream& order) = 0;
  virtual void do_deallocate(void* memory, std::size_t bytes, const stream& order) noexcept = 0;

  device on_;
  stream own_;
  detail::aligned_addresses addresses_;
};

struct device_memory_options {
  // Bytes that the pool keeps when a stream or event is waited for. If not set: the value that the
  // process has set for the pool, otherwise all bytes.
  std::optional<std::uint64_t> keep_bytes = {};
};

// Memory of the device's default pool (cudaMallocAsync), which the whole process shares.
//
// Not yet run on a GPU: tested only with a fake driver.
class device_memory final : public device_resource {
 public:
  // Throws error if the device has no memory pools.
  explicit device_memory(device on, const device_memory_options& options = {});

  std::string_view name() const noexcept override { return "device memory"; }

  std::size_t used_bytes() const noexcept { return used_bytes_; }  // of allocations

  // Returns memory of the pool that is not allocated to the device. Throws error.
  void trim();

 private:
  void* do_allocate(std::size_t bytes, const stream& order) override;
  void do_deallocate(void* memory, std::size_t bytes, const stream& order) noexcept override;

  std::atomic<std::size_t> used_bytes_ = 0;
};

// A share in memory of a GPU. The memory returns to its resource when the last copy is destroyed,
// after the work of all streams that use it. No thread waits for that.
//
// A stream passed to use_on() must exist until the last copy is destroyed. Thread: any, except a
// callback of CUDA.
class device_block {
 public:
  // Allocates on the stream `home`, where the memory may be used at once and is freed. Shares the
  // ownership of the resource if a std::shared_ptr owns it; otherwise the resource must outlive all
  // blocks. Throws error; error(invalid_argument) for stream::per_thread_default.
  device_block(device_resource& from, std::size_t bytes, const stream& home);

  std::span<std::byte> bytes() const noexcept;
  const stream& home() const noexcept;

  // Returns a buffer for a part of the memory, which shares the ownership.
  buffer slice(std::size_t offset, std::size_t bytes) const;

  // Declares that work of the stream uses the memory, including work that is queued later. For
  // stream::per_thread_default, only work that is queued now: call use_on() or record_on() again
  // after later work. Throws error.
  void use_on(const stream& user) const;

  // Declares that work which is queued later on the stream does not use the memory. It can return
  // to its resource when the stream has passed this point. Throws error.
  void record_on(const stream& user) const;

 private:
  struct state;
  std::shared_ptr<state> state_;
};

}  // namespace lade::cuda
