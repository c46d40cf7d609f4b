// The state that copies between the host and GPUs share in a runtime.

#pragma once

#include <lade/buffer.hpp>
#include <lade/cuda/device.hpp>
#include <lade/cuda/event.hpp>
#include <lade/cuda/memory.hpp>
#include <lade/cuda/stream.hpp>
#include <lade/cuda/to_device.hpp>
#include <lade/runtime.hpp>
#include <lade/scope.hpp>
#include <lade/task.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace lade::cuda {

// The memory of a runtime's copies, by device, and the host memory of copies in flight. The end of
// the runtime waits for these copies; the end of a run does not.
class transfers {
 public:
  explicit transfers(runtime& runtime);
  transfers(const transfers&) = delete;

  // Returns the object of a runtime.
  static transfers& of(runtime& runtime);

  // Created at the first call. Throw error.
  pinned_memory& pinned(device near);
  device_resource& memory(device on);
  const stream& to_host(device from);

  // Keeps the memory until the event has passed or the device has failed, and then calls `then`.
  void keep(const event& until, std::vector<buffer> memory,
            std::function<void()> then = {}) noexcept;

  void count(std::size_t bytes, std::size_t staged_bytes) noexcept;
  transfer_statistics stats() const;

  // Returns once why memory could not be pinned; else empty.
  std::string unreported_refusal(device near);

 private:
  struct link {
    std::shared_ptr<pinned_memory> pinned;
    std::shared_ptr<device_memory> memory;
    std::optional<stream> to_host;
    bool is_refusal_reported = false;
  };

  static task<> wait_and_call(event until, std::vector<buffer> memory, std::function<void()> then);
  static task<bool> has_passed(event until);

  const std::size_t limit_bytes_;
  mutable std::mutex mutex_;
  std::map<int, link> links_;  // guarded by mutex_
  std::atomic<std::uint64_t> batches_ = 0;
  std::atomic<std::uint64_t> bytes_ = 0;
  std::atomic<std::uint64_t> staged_bytes_ = 0;
  scope held_;
};

// Queues copies on a stream, and keeps the host memory that they use until the stream has passed
// them, also if one of them cannot be queued.
class queued_copies {
 public:
  // Throws error.
  queued_copies(transfers& in, const stream& on, std::vector<buffer> memory);
  queued_copies(const queued_copies&) = delete;
  ~queued_copies();

  void copy_to_device(std::byte* to, const std::byte* from, std::size_t bytes) const;
  void copy_to_host(std::byte* to, const std::byte* from, std::size_t bytes) const;

  // Both return an event after the copies. finish() keeps the memory until the event has passed,
  // and then calls `then`, which must not throw. After finish_unkept(), the caller must keep the
  // memory.
  event finish(std::function<void()> then = {});
  event finish_unkept();

 private:
  transfers& in_;
  const stream on_;
  current_device current_;
  event passed_;
  std::vector<buffer> memory_;  // empty once it is kept elsewhere
};

}  // namespace lade::cuda
