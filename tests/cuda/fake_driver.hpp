// A CUDA runtime in host memory, for machines without a GPU.

#pragma once

#include "../../cuda/runtime_api.hpp"

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace lade::cuda {

// Whether the calling thread is a reactor, which a driver must not block.
bool is_reactor() noexcept;

// While it lives, the module calls it instead of CUDA. Work on streams runs in order on a thread of
// its own, `work_by_itself`, or when a test calls run(). An operation that must wait for an event
// holds up its stream, no other.
//
// It finds misuse, which `faults()` lists: a copy from or to memory that was freed, a host function
// that calls CUDA, memory that is pinned on a reactor or freed twice, a stream or event that is
// used after its destruction. What is still allocated is counted by `live()`.
class fake_driver {
 public:
  struct options {
    int devices = 1;
    bool works_by_itself = true;
    std::size_t pinned_limit = std::size_t{1} << 30;  // bytes; more is refused
    std::size_t device_limit = std::size_t{1} << 30;
  };

  fake_driver() : fake_driver(options{}) {}
  explicit fake_driver(const options& how);
  fake_driver(const fake_driver&) = delete;
  ~fake_driver();

  // Runs what can run, in all streams. Returns how many operations ran.
  std::size_t run();

  // Streams stand still until they are released.
  void hold();
  void release();

  // The stream stands still behind what is queued now, until the returned function is called.
  std::function<void()> block(cudaStream_t stream);

  // The next call of the function, named as in the table, returns this; `after` such calls.
  void fail_next(const std::string& function, cudaError_t with, std::size_t after = 0);
  void fail_no_more();

  // From now on every call fails, and nothing that is queued runs: a sticky error.
  void break_device(cudaError_t with);

  // Whether the GPU may use that memory now. If not, that is a fault.
  bool may_access(const void* memory, std::size_t bytes);

  std::size_t calls(const std::string& function) const;
  std::vector<std::string> faults() const;

  // Streams, events and allocations that exist.
  struct live_objects {
    std::size_t streams = 0;
    std::size_t events = 0;
    std::size_t pinned_bytes = 0;
    std::size_t device_bytes = 0;
  };
  live_objects live() const;

  // The release threshold of the default pool of memory.
  std::uint64_t pool_keeps() const {
    std::lock_guard lock(mutex_);
    return pool_keeps_;
  }

  // How many operations are queued.
  std::size_t queued() const;

 private:
  struct table;
  struct fake_event;
  struct fake_stream;
  struct operation {
    std::function<bool()> run;  // returns false while it has to wait
    bool is_host_function;
  };
  struct allocation {
    std::size_t bytes;
    bool pinned;
    bool freed = false;
    std::unique_ptr<std::byte[]> memory;
  };
  struct failure {
    cudaError_t with;
    std::size_t after;
  };

  cudaError_t enter(const char* function);
  void fault(std::string what);
  fake_stream* stream_of(cudaStream_t handle);
  fake_event* event_of(cudaEvent_t handle);
  cudaError_t queue(cudaStream_t stream, std::function<bool()> run, bool is_host_function = false);
  void return_arguments();
  bool run_one();
  void work();
  void* allocate(std::size_t bytes, bool pinned);
  bool release_memory(void* memory, bool pinned);

  options options_;
  mutable std::recursive_mutex mutex_;  // guards all that follows
  std::condition_variable_any changed_;
  std::list<fake_stream> streams_;
  std::list<fake_event> events_;
  std::map<std::byte*, allocation> memory_;
  std::map<std::string, failure> failures_;
  std::map<std::string, std::size_t> calls_;
  std::vector<std::string> faults_;
  cudaError_t broken_ = cudaSuccess;
  std::uint64_t pool_keeps_ = 0;  // the release threshold of the default pool
  bool held_ = false;
  bool ending_ = false;
  std::thread worker_;
};

}  // namespace lade::cuda
