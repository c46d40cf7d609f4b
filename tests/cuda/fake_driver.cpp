#include "fake_driver.hpp"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

#include <pthread.h>

namespace lade::cuda {

static fake_driver* current_driver = nullptr;
static thread_local int current_index = 0;
static thread_local bool in_host_function = false;

bool is_reactor() noexcept {
  char name[16] = {};
  return pthread_getname_np(pthread_self(), name, sizeof name) == 0 &&
         std::string_view(name) == "lade-reactor";
}

struct fake_driver::fake_event {
  std::size_t records = 0;  // how often it was recorded, and how many of these were passed
  std::size_t passed = 0;
  bool timing = false;
  bool destroyed = false;

  bool is_complete() const { return passed == records; }
};

struct fake_driver::fake_stream {
  int device = 0;
  bool destroyed = false;
  std::deque<operation> queue;
};

// The functions of the table.
struct fake_driver::table : runtime_api {
  static fake_driver& self() { return *current_driver; }

  template <class F>
  static cudaError_t locked(const char* function, F body) {
    std::lock_guard lock(self().mutex_);
    if (auto failed = self().enter(function); failed != cudaSuccess) return failed;
    return body(self());
  }

  table() {
    get_device_count = [](int* count) {
      return locked("get_device_count", [&](fake_driver& it) {
        *count = it.options_.devices;
        return it.options_.devices ? cudaSuccess : cudaErrorNoDevice;
      });
    };
    get_device = [](int* index) {
      return locked("get_device",
                    [&](fake_driver&) { return *index = current_index, cudaSuccess; });
    };
    set_device = [](int index) {
      return locked("set_device", [&](fake_driver& it) {
        if (index < 0 || index >= it.options_.devices) return cudaErrorInvalidDevice;
        current_index = index;
        return cudaSuccess;
      });
    };
    device_get_attribute = [](int* value, cudaDeviceAttr attribute, int) {
      return locked("device_get_attribute", [&](fake_driver&) {
        *value = attribute == cudaDevAttrComputeCapabilityMajor ? 9 : 0;
        return cudaSuccess;
      });
    };
    device_get_pci_bus_id = [](char* id, int bytes, int index) {
      return locked("device_get_pci_bus_id", [&](fake_driver&) {
        std::snprintf(id, static_cast<std::size_t>(bytes), "FFFF:%02X:00.0", index);
        return cudaSuccess;
      });
    };
    get_device_properties = [](cudaDeviceProp* properties, int index) {
      return locked("get_device_properties", [&](fake_driver&) {
        std::snprintf(properties->name, sizeof properties->name, "Fake GPU %d", index);
        return cudaSuccess;
      });
    };
    mem_get_info = [](std::size_t* free, std::size_t* total) {
      return locked("mem_get_info", [&](fake_driver& it) {
        *total = it.options_.device_limit;
        *free = *total - it.live().device_bytes;
        return cudaSuccess;
      });
    };
    device_synchronize = [] {
      return locked("device_synchronize", [&](fake_driver& it) {
        while (it.queued() > 0) it.run();
        return cudaSuccess;
      });
    };
    get_last_error = [] { return cudaSuccess; };

    stream_create = [](cudaStream_t* stream, unsigned, int) {
      return locked("stream_create", [&](fake_driver& it) {
        it.streams_.emplace_back().device = current_index;
        *stream = reinterpret_cast<cudaStream_t>(&it.streams_.back());
        return cudaSuccess;
      });
    };
    stream_destroy = [](cudaStream_t stream) {
      return locked("stream_destroy", [&](fake_driver& it) {
        if (auto* found = it.stream_of(stream)) found->destroyed = true;
        return cudaSuccess;
      });
    };
    stream_query = [](cudaStream_t stream) {
      return locked("stream_query", [&](fake_driver& it) {
        auto* found = it.stream_of(stream);
        if (!found) return cudaErrorInvalidResourceHandle;
        return found->queue.empty() ? cudaSuccess : cudaErrorNotReady;
      });
    };
    stream_synchronize = [](cudaStream_t stream) {
      return locked("stream_synchronize", [&](fake_driver& it) {
        auto* found = it.stream_of(stream);
        if (!found) return cudaErrorInvalidResourceHandle;
        while (!found->queue.empty()) it.run();
        return cudaSuccess;
      });
    };
    stream_wait_event = [](cudaStream_t stream, cudaEvent_t event, unsigned) {
      return locked("stream_wait_event", [&](fake_driver& it) {
        auto* awaited = it.event_of(event);
        if (!awaited) return cudaErrorInvalidResourceHandle;
        return it.queue(stream,
                        [awaited, until = awaited->records] { return awaited->passed >= until; });
      });
    };
    launch_host_func = [](cudaStream_t stream, cudaHostFn_t function, void* argument) {
      return locked("launch_host_func", [&](fake_driver& it) {
        if (is_reactor()) it.fault("a reactor called a driver that may block");
        auto call = [function, argument] {
          in_host_function = true;
          function(argument);
          in_host_function = false;
          return true;
        };
        return it.queue(stream, call, true);
      });
    };

    event_create = [](cudaEvent_t* event, unsigned flags) {
      return locked("event_create", [&](fake_driver& it) {
        it.events_.emplace_back().timing = (flags & cudaEventDisableTiming) == 0;
        *event = reinterpret_cast<cudaEvent_t>(&it.events_.back());
        return cudaSuccess;
      });
    };
    event_destroy = [](cudaEvent_t event) {
      return locked("event_destroy", [&](fake_driver& it) {
        if (auto* found = it.event_of(event)) found->destroyed = true;
        return cudaSuccess;
      });
    };
    event_record = [](cudaEvent_t event, cudaStream_t stream) {
      return locked("event_record", [&](fake_driver& it) {
        auto* recorded = it.event_of(event);
        if (!recorded) return cudaErrorInvalidResourceHandle;
        auto number = ++recorded->records;
        return it.queue(stream, [recorded, number] {
          recorded->passed = std::max(recorded->passed, number);
          return true;
        });
      });
    };
    event_query = [](cudaEvent_t event) {
      return locked("event_query", [&](fake_driver& it) {
        auto* found = it.event_of(event);
        if (!found) return cudaErrorInvalidResourceHandle;
        return found->is_complete() ? cudaSuccess : cudaErrorNotReady;
      });
    };
    event_synchronize = [](cudaEvent_t event) {
      return locked("event_synchronize", [&](fake_driver& it) {
        auto* found = it.event_of(event);
        if (!found) return cudaErrorInvalidResourceHandle;
        while (!found->is_complete()) it.run();
        return cudaSuccess;
      });
    };
    event_elapsed_time = [](float* milliseconds, cudaEvent_t from, cudaEvent_t to) {
      return locked("event_elapsed_time", [&](fake_driver& it) {
        if (!it.event_of(from)->timing || !it.event_of(to)->timing)
          return cudaErrorInvalidResourceHandle;
        *milliseconds = 1;
        return cudaSuccess;
      });
    };

    host_alloc = [](void** memory, std::size_t bytes, unsigned) {
      return locked("host_alloc", [&](fake_driver& it) {
        if (is_reactor()) it.fault("memory was pinned on a reactor, which that blocks");
        *memory = it.allocate(bytes, true);
        return *memory ? cudaSuccess : cudaErrorMemoryAllocation;
      });
    };
    free_host = [](void* memory) {
      return locked("free_host", [&](fake_driver& it) {
        return it.release_memory(memory, true) ? cudaSuccess : cudaErrorInvalidValue;
      });
    };
    malloc_async = [](void** memory, std::size_t bytes, cudaStream_t) {
      return locked("malloc_async", [&](fake_driver& it) {
        *memory = it.allocate(bytes, false);
        return *memory ? cudaSuccess : cudaErrorMemoryAllocation;
      });
    };
    free_async = [](void* memory, cudaStream_t stream) {
      return locked("free_async", [&](fake_driver& it) {
        return it.queue(stream, [&it, memory] {
          it.release_memory(memory, false);
          return true;
        });
      });
    };
    get_default_pool = [](cudaMemPool_t* pool, int) {
      return locked("get_default_pool", [&](fake_driver&) {
        *pool = nullptr;
        return cudaSuccess;
      });
    };
    exchange_capture_mode = [](cudaStreamCaptureMode*) { return cudaSuccess; };
    pool_get_attribute = [](cudaMemPool_t, cudaMemPoolAttr, void* value) {
      return locked("pool_get_attribute", [&](fake_driver& it) {
        *static_cast<std::uint64_t*>(value) = it.pool_keeps_;
        return cudaSuccess;
      });
    };
    pool_set_attribute = [](cudaMemPool_t, cudaMemPoolAttr, void* value) {
      return locked("pool_set_attribute", [&](fake_driver& it) {
        it.pool_keeps_ = *static_cast<std::uint64_t*>(value);
        return cudaSuccess;
      });
    };
    pool_trim = [](cudaMemPool_t, std::size_t) {
      return locked("pool_trim", [](fake_driver&) { return cudaSuccess; });
    };
    memcpy_async = [](void* to, const void* from, std::size_t bytes, cudaMemcpyKind,
                      cudaStream_t stream) {
      return locked("memcpy_async", [&](fake_driver& it) {
        return it.queue(stream, [&it, to, from, bytes] {
          if (it.may_access(to, bytes) && it.may_access(from, bytes)) std::memcpy(to, from, bytes);
          return true;
        });
      });
    };
  }
};

fake_driver::fake_driver(const options& how) : options_(how) {
  static const table functions;
  current_driver = this;
  current_index = 0;
  streams_.resize(2);  // the default ones
  replace_api(&functions);
  if (how.works_by_itself) worker_ = std::thread([this] { work(); });
}

fake_driver::~fake_driver() {
  {
    std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  if (worker_.joinable()) worker_.join();
  return_arguments();
  replace_api(nullptr);
  current_driver = nullptr;
}

// A driver whose device has failed calls nobody back. What its callbacks own would be lost.
void fake_driver::return_arguments() {
  if (broken_ == cudaSuccess) return;
  for (auto& each : streams_)
    for (auto& queued : each.queue)
      if (queued.is_host_function) queued.run();
}

cudaError_t fake_driver::enter(const char* function) {
  ++calls_[function];
  if (in_host_function) {
    fault(std::string("a host function called ") + function);
    return cudaErrorNotPermitted;
  }
  auto planned = failures_.find(function);
  if (planned != failures_.end() && planned->second.after-- == 0) {
    auto with = planned->second.with;
    failures_.erase(planned);
    return with;
  }
  return broken_;
}

void fake_driver::fault(std::string what) { faults_.push_back(std::move(what)); }

fake_driver::fake_stream* fake_driver::stream_of(cudaStream_t handle) {
  if (!handle || handle == cudaStreamLegacy) return &streams_.front();
  if (handle == cudaStreamPerThread) return &*std::next(streams_.begin());
  for (auto& each : streams_)
    if (reinterpret_cast<cudaStream_t>(&each) == handle && !each.destroyed) return &each;
  fault("a stream that does not exist was used");
  return nullptr;
}

fake_driver::fake_event* fake_driver::event_of(cudaEvent_t handle) {
  for (auto& each : events_)
    if (reinterpret_cast<cudaEvent_t>(&each) == handle && !each.destroyed) return &each;
  fault("an event that does not exist was used");
  return nullptr;
}

cudaError_t fake_driver::queue(cudaStream_t stream, std::function<bool()> run,
                               bool is_host_function) {
  auto* found = stream_of(stream);
  if (!found) return cudaErrorInvalidResourceHandle;
  found->queue.push_back({std::move(run), is_host_function});
  changed_.notify_all();
  return cudaSuccess;
}

// With the mutex held, so that a host function which waits for a call of the driver is stuck, as it
// may be with the real one.
bool fake_driver::run_one() {
  if (held_ || broken_ != cudaSuccess) return false;
  for (auto& each : streams_) {
    if (each.queue.empty()) continue;
    auto next = each.queue.front();
    if (!next.run()) continue;
    each.queue.pop_front();
    return true;
  }
  return false;
}

std::size_t fake_driver::run() {
  std::lock_guard lock(mutex_);
  std::size_t done = 0;
  while (run_one()) ++done;
  return done;
}

void fake_driver::work() {
  std::unique_lock lock(mutex_);
  while (!ending_)
    if (!run_one()) changed_.wait(lock);
}

void fake_driver::hold() {
  std::lock_guard lock(mutex_);
  held_ = true;
}

void fake_driver::release() {
  {
    std::lock_guard lock(mutex_);
    held_ = false;
  }
  changed_.notify_all();
}

void fake_driver::fail_next(const std::string& function, cudaError_t with, std::size_t after) {
  std::lock_guard lock(mutex_);
  failures_[function] = {with, after};
}

void fake_driver::fail_no_more() {
  std::lock_guard lock(mutex_);
  failures_.clear();
}

void fake_driver::break_device(cudaError_t with) {
  std::lock_guard lock(mutex_);
  broken_ = with;
}

std::function<void()> fake_driver::block(cudaStream_t stream) {
  std::lock_guard lock(mutex_);
  auto open = std::make_shared<bool>(false);
  (void)queue(stream, [open] { return *open; });
  return [this, open] {
    {
      std::lock_guard again(mutex_);
      *open = true;
    }
    changed_.notify_all();
  };
}

std::size_t fake_driver::calls(const std::string& function) const {
  std::lock_guard lock(mutex_);
  auto found = calls_.find(function);
  return found == calls_.end() ? 0 : found->second;
}

std::vector<std::string> fake_driver::faults() const {
  std::lock_guard lock(mutex_);
  return faults_;
}

fake_driver::live_objects fake_driver::live() const {
  std::lock_guard lock(mutex_);
  live_objects counts;
  auto lives = [](auto& each) { return !each.destroyed; };
  counts.streams = static_cast<std::size_t>(std::ranges::count_if(streams_, lives)) - 2;
  counts.events = static_cast<std::size_t>(std::ranges::count_if(events_, lives));
  for (auto& [memory, each] : memory_)
    if (!each.freed) (each.pinned ? counts.pinned_bytes : counts.device_bytes) += each.bytes;
  return counts;
}

std::size_t fake_driver::queued() const {
  std::lock_guard lock(mutex_);
  std::size_t sum = 0;
  for (auto& each : streams_) sum += each.queue.size();
  return sum;
}

// Freed memory stays, so that its use is noticed.
void* fake_driver::allocate(std::size_t bytes, bool pinned) {
  auto now = live();
  auto [used, limit] = pinned ? std::pair(now.pinned_bytes, options_.pinned_limit)
                              : std::pair(now.device_bytes, options_.device_limit);
  if (bytes > limit - used) return nullptr;
  constexpr std::size_t alignment = 4096;
  auto memory = std::make_unique<std::byte[]>(bytes + alignment);
  void* first = memory.get();
  auto space = bytes + alignment;
  std::align(alignment, bytes, first, space);
  memory_.emplace(static_cast<std::byte*>(first),
                  allocation{bytes, pinned, false, std::move(memory)});
  return first;
}

bool fake_driver::release_memory(void* memory, bool pinned) {
  auto found = memory_.find(static_cast<std::byte*>(memory));
  if (found == memory_.end() || found->second.freed || found->second.pinned != pinned) {
    fault("memory was freed that is not allocated");
    return false;
  }
  found->second.freed = true;
  std::memset(memory, 0xDD, found->second.bytes);
  return true;
}

// Memory that is not the driver's is pageable memory of the host.
bool fake_driver::may_access(const void* memory, std::size_t bytes) {
  auto* first = static_cast<const std::byte*>(memory);
  auto behind = memory_.upper_bound(const_cast<std::byte*>(first));
  if (behind == memory_.begin()) return true;
  auto& [begin, owner] = *std::prev(behind);
  if (first >= begin + owner.bytes) return true;
  if (owner.freed) fault("a copy used memory that was freed");
  if (first + bytes > begin + owner.bytes) fault("a copy went beyond its memory");
  return !owner.freed && first + bytes <= begin + owner.bytes;
}

}  // namespace lade::cuda
