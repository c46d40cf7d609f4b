// The GPUs of the machine.

#pragma once

#include <lade/device.hpp>

#include <cstddef>
#include <optional>
#include <string>

namespace lade::cuda {

// A GPU that CUDA can use, identified by its index. A value: it owns nothing.
//
// Programs with this module start without a driver and without a GPU. Then count() is 0, and only
// functions that need a GPU throw.
//
// Thread: any. Functions of this module leave the calling thread's current device as it was.
//
// Not yet run on a GPU: tested only with a fake driver.
class device {
 public:
  // Throws error with the index and the number of GPUs, or with the reason why none can be used.
  explicit device(int index = 0);

  // The calling thread's current device.
  static device current();

  // The number of GPUs that can be used; 0 without a driver. If it is 0, `why_none()` returns the
  // reason: "cudaErrorNoDevice: no CUDA-capable device is detected".
  static int count() noexcept;
  static std::string why_none();

  int index() const noexcept { return index_; }

  std::string name() const;  // "NVIDIA H100 80GB HBM3"

  struct version {
    int major;
    int minor;
  };
  version compute_capability() const;  // 9.0

  struct memory_state {
    std::size_t free_bytes;
    std::size_t total_bytes;
  };
  memory_state memory() const;

  // The NUMA node of the GPU; empty if the system does not report it.
  std::optional<unsigned> numa_node() const;

  // Blocks until all work on the device has finished. Throws error(wrong_thread) on a thread of a
  // runtime: await a stream or an event there.
  void synchronize() const;

  friend bool operator==(const device&, const device&) = default;

 private:
  int index_;
};

// Makes a device the calling thread's current device. The destructor restores the previous one. For
// code that calls CUDA directly. Throws error.
class current_device {
 public:
  explicit current_device(device on);
  current_device(const current_device&) = delete;
  ~current_device();

 private:
  int before_;
  bool changed_;
};

}  // namespace lade::cuda
