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
#include <utility>
#include <vector>

namespace lade::cuda {

// Whether the calling thread is a reactor, which a driver must not block.
bool is_reactor() noexcept;

// While it lives, the module calls it instead of CUDA. Work on streams runs in order on a thread of
// its own, `work_by_itself`, or when a test calls run(). An operation that must wait for an event
// holds up its stream, no other.
//
// It finds misuse, which `faults()` lists:
// - a copy from or to memory that was freed, beyond it, or of another kind than the call says;
// - memory of a GPU that is used or freed on a stream which is not ordered behind its allocation
// and
//   its other uses, or on a stream of another GPU;
// - a stream that is used while another device is current, and an event on another device's stream;
// - a stream that waits for the legacy default stream, unknown flags and attributes;
// - a host function that calls CUDA, and a reactor that makes a call which blocks;
// - a call that ends a capture of another thread, between begin_capture() and end_capture();
// - memory that is freed twice, a stream or event that is used after its destruction.
// Some of it CUDA allows, but this module does not do. What is still allocated is counted by
// `live()`.
class fake_driver {
 public:
  struct options {
    int devices = 1;
    bool works_by_itself = true;
    std::size_t pinned_limit = std::size_t{1} << 30;  // bytes; more is refused
    std::size_t device_limit = std::size_t{1} << 30;
    int numa_node = -1;                  // of all devices; -1: the system has no nodes
    bool has_concurrent_managed = true;  // whether the CPU may use managed memory beside kernels
  };

  fake_driver() : fake_driver(options{}) {}
  explicit fake_driver(const options& how);
  fake_driver(const fake_driver&) = delete;
  ~fake_driver();

  // Runs what can run, in all streams. Returns how many operations ran.
  std::size_t run();

  // Streams stand still until they are released. Calls that wait for them wait until then.
  void hold();
  void release();

  // The stream stands still behind what is queued now, until the returned function is called.
  std::function<void()> block(cudaStream_t stream);

  // The next call of the function, named as in the table, returns this; `after` such calls.
  void fail_next(const std::string& function, cudaError_t with, std::size_t after = 0);
  void fail_no_more();

  // As if a thread that calls nothing else captured a graph in the default mode.
  void begin_capture();
  void end_capture();

  // As if a library of NVIDIA called the driver that is in use: any such call may end a capture.
  static void call_library(const std::string& function);

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
    std::size_t managed_bytes = 0;
  };
  live_objects live() const;

  // The release threshold of a device's default pool of memory.
  std::uint64_t pool_keeps(int device = 0) const;

  // As it was given to the stream's creation.
  int priority_of(cudaStream_t stream);

  // Where memory was pinned: the current device, and the NUMA node that the thread preferred, or
  // -1.
  struct pinning {
    int device;
    int numa_node;
    friend bool operator==(const pinning&, const pinning&) = default;
  };
  std::vector<pinning> pinnings() const;

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
  // A point in the work of a stream, and the points of all streams that somebody is behind.
  struct point {
    const fake_stream* on;
    std::uint64_t number;
  };
  using points = std::map<const fake_stream*, std::uint64_t>;

  enum class memory_kind { pinned, device, managed };
  struct allocation {
    std::size_t bytes;
    memory_kind kind;
    int device;
    std::unique_ptr<std::byte[]> memory;
    bool returned = false;  // free_async was called
    bool freed = false;
    point allocated{};  // of stream-ordered memory, as are the uses
    points uses = {};
  };
  struct failure {
    cudaError_t with;
    std::size_t after;
  };

  cudaError_t enter(const char* function);
  void fault(std::string what);
  void require_no_reactor(const char* doing);
  fake_stream& default_stream(bool of_thread);
  fake_stream* stream_of(cudaStream_t handle);
  fake_stream* current_stream_of(cudaStream_t handle);
  fake_event* event_of(cudaEvent_t handle);
  std::uint64_t* threshold_of(cudaMemPool_t pool, cudaMemPoolAttr attribute);
  void queue(fake_stream& on, std::function<bool()> run, bool is_host_function = false);
  cudaError_t queue_copy(fake_stream& on, void* to, const void* from, std::size_t bytes);
  cudaError_t queue_free(fake_stream& on, void* memory);
  void return_arguments();
  bool run_one();
  void work();
  cudaError_t wait_until(const std::function<bool()>& done);

  // Merges points into others.
  static void learn(points& known, const points& more);
  static points points_behind(const fake_stream& all);
  bool is_behind(const fake_stream& on, const point& earlier) const;

  void* allocate(std::size_t bytes, memory_kind kind);
  void free_now(allocation& freed, void* first);
  cudaError_t free_now(void* memory, memory_kind kind);
  std::pair<std::byte* const, allocation>* owner_of(const void* memory);
  void require_kind(const void* memory, bool of_host, bool of_device);
  void use(const fake_stream& on, const void* memory);

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
  bool captures_ = false;
  std::vector<std::uint64_t> pool_keeps_;  // the release thresholds of the default pools
  std::map<std::pair<std::thread::id, int>, fake_stream*> default_streams_;
  std::vector<pinning> pinnings_;
  points known_;  // what the host has waited for
  bool held_ = false;
  bool ending_ = false;
  std::thread worker_;
};

}  // namespace lade::cuda
