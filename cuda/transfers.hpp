// What copies between the host and GPUs share in a runtime.

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

// The memory of a runtime's copies, by device, and the host memory of copies in flight. The
// runtime's end waits for these copies, the end of a run does not.
class transfers {
 public:
  explicit transfers(runtime& runtime);
  transfers(const transfers&) = delete;

  // The one of a runtime.
  static transfers& of(runtime& runtime);

  // Made when they are first asked for. Throws error.
  pinned_memory& pinned(device near);
  device_resource& memory(device on);
  const stream& to_host(device from);

  // Keeps the memory until the event has been passed or the device has failed, then calls `then`.
  void keep(const event& until, std::vector<buffer> memory,
            std::function<void()> then = {}) noexcept;

  void count(std::size_t bytes, std::size_t staged_bytes) noexcept;
  transfer_statistics stats() const;

  // Why memory could not be pinned, once; empty after that, and if all of it is.
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
  std::map<int, link> links_;  // guarded by the mutex
  std::atomic<std::uint64_t> batches_ = 0;
  std::atomic<std::uint64_t> bytes_ = 0;
  std::atomic<std::uint64_t> staged_bytes_ = 0;
  scope held_;
};

// Copies on a stream, and the host memory that they use. The memory lives until the stream has
// passed the copies, also if one of them cannot be queued.
class queued_copies {
 public:
  // Throws error.
  queued_copies(transfers& in, const stream& on, std::vector<buffer> memory);
  queued_copies(const queued_copies&) = delete;
  ~queued_copies();

  void copy_to_device(std::byte* to, const std::byte* from, std::size_t bytes) const;
  void copy_to_host(std::byte* to, const std::byte* from, std::size_t bytes) const;

  // An event behind the copies. The memory is kept until it has been passed; then `then` is called,
  // which must not throw. After finish_unkept(), both are the business of the caller.
  event finish(std::function<void()> then = {});
  event finish_unkept();

 private:
  transfers& in_;
  const stream on_;
  current_device current_;
  event passed_;
  std::vector<buffer> memory_;  // empty when it is kept
};

}  // namespace lade::cuda
