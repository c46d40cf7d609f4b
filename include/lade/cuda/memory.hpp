// Memory for GPUs: pinned memory of the host, and memory of a GPU in stream order.

#pragma once

#include <lade/cuda/device.hpp>
#include <lade/cuda/event.hpp>
#include <lade/cuda/stream.hpp>
#include <lade/detail/range_allocator.hpp>
#include <lade/memory_resource.hpp>

#include <atomic>
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
  std::size_t limit_bytes = std::numeric_limits<std::size_t>::max();  // of pinned memory
  std::optional<device> near = {};  // the GPU whose NUMA node holds the memory
};

// Pinned memory of the host, which all GPUs read and write by themselves. It is pinned in regions
// of 32 MiB, or of as much as a larger allocation needs. A region stays pinned until the resource
// is destroyed, or until a new region would exceed the limit.
//
// If the driver refuses to pin, or at the limit, an allocation consists of ordinary pages. Copies
// from there are correct, but slower; where() is that of pinned memory all the same. Kernels must
// not be given them: the GPU cannot reach them. `stats()` counts them, and refusal() says why.
//
//   auto pinned = std::make_shared<lade::cuda::pinned_memory>();
//   lade::runtime runtime({.memory = pinned.get()});
//
// to_device() brings pinned memory by itself. Thread: any, several at a time, except a callback of
// CUDA.
//
// Not yet run on a GPU: tested over a driver that a test replaces.
class pinned_memory final : public memory_resource {
 public:
  struct statistics {
    std::size_t pinned_bytes;    // of all regions
    std::size_t fallback_bytes;  // of allocations that are not pinned
    std::uint64_t fallbacks;     // allocations that were not pinned, since the beginning
  };

  explicit pinned_memory(const pinned_memory_options& options = {}) : options_(options) {}
  pinned_memory(const pinned_memory&) = delete;
  ~pinned_memory() override;

  void* allocate(std::size_t bytes, std::size_t alignment) override;
  void deallocate(void* memory, std::size_t bytes, std::size_t alignment) noexcept override;
  lade::device where() const noexcept override { return {lade::device::kind::cuda_host, 0}; }
  std::string_view name() const noexcept override { return "pinned memory"; }

  statistics stats() const;

  // Why an allocation was not pinned, for the first such allocation; empty if all were.
  std::string refusal() const;

 private:
  struct region {
    std::size_t bytes;
    bool is_free;
  };

  std::byte* allocate_pinned(std::size_t bytes, std::size_t alignment);
  bool add_region(std::size_t bytes);
  void* pin(std::size_t bytes);
  void refuse(std::string why);
  void release_free_regions() noexcept;
  region& region_of(std::byte* memory) noexcept {
    return std::prev(regions_.upper_bound(memory))->second;
  }
  void* allocate_fallback(std::size_t bytes, std::size_t alignment);

  const pinned_memory_options options_;
  mutable std::mutex mutex_;  // guards all that follows
  lade::detail::range_allocator ranges_;
  std::map<std::byte*, region> regions_;
  std::map<void*, std::size_t> fallbacks_;  // allocations that are not pinned
  std::string refusal_;
  statistics statistics_{};
};

// Memory of one GPU, allocated and freed in stream order: allocate() returns at once, and the
// memory may be used by work that is queued on that stream afterwards. Derive from it to use the
// caching allocator of a framework.
//
// The functions of memory_resource, which have no stream, wait for the GPU when they allocate. When
// they free, the GPU must have finished with the memory.
//
// Thread: any, several at a time, except a callback of CUDA.
class device_resource : public memory_resource {
 public:
  explicit device_resource(device on) : on_(on), own_(on) {}

  // `order`: a stream of this device. The alignment is at least 256 bytes. Throws error.
  void* allocate(std::size_t bytes, const stream& order) { return do_allocate(bytes, order); }

  // Frees the memory when `order` has passed the work that is queued now. It may be another stream
  // than the one that allocated. `bytes`: as it was allocated.
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
  std::mutex mutex_;
  std::map<void*, std::pair<void*, std::size_t>> aligned_;  // what was allocated for more alignment
};

struct device_memory_options {
  // How many bytes the pool keeps when a stream or event is waited for. Not given: what the process
  // has chosen for the pool before, else all.
  std::optional<std::uint64_t> keep_bytes = {};
};

// Memory of the device's default pool (cudaMallocAsync), which the whole process shares.
//
// Not yet run on a GPU: tested over a driver that a test replaces.
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
// behind the work of all streams that use it. No thread waits for that.
//
// A stream that use_on() names must exist until the last copy is destroyed. Thread: any, except a
// callback of CUDA.
class device_block {
 public:
  // Allocates on the stream `home`, where the memory may be used at once and is freed. Shares the
  // ownership of the resource if a std::shared_ptr owns it; otherwise it must outlive all blocks.
  // Throws error.
  device_block(device_resource& from, std::size_t bytes, const stream& home);

  std::span<std::byte> bytes() const noexcept;
  const stream& home() const noexcept;

  // A buffer over part of it, which shares the ownership.
  buffer slice(std::size_t offset, std::size_t bytes) const;

  // The stream's work uses the memory, also work that is queued later. Of
  // stream::per_thread_default, only what is queued now: call it, or record_on(), again behind
  // later work. Throws error.
  void use_on(const stream& user) const;

  // The stream's work that is queued later does not use the memory: it returns to its resource as
  // soon as the stream has passed this point. Throws error.
  void record_on(const stream& user) const;

 private:
  struct state;
  std::shared_ptr<state> state_;
};

}  // namespace lade::cuda
