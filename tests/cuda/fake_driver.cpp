#include "fake_driver.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>
#include <utility>

#include <linux/mempolicy.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace lade::cuda {

static fake_driver* current_driver = nullptr;
static thread_local int current_index = 0;
static thread_local bool in_host_function = false;
static thread_local cudaError_t last_failure = cudaSuccess;
static thread_local cudaStreamCaptureMode capture_mode = cudaStreamCaptureModeGlobal;

bool is_reactor() noexcept {
  char name[16] = {};
  return pthread_getname_np(pthread_self(), name, sizeof name) == 0 &&
         std::string_view(name) == "lade-reactor";
}

struct fake_driver::fake_event {
  int device = 0;
  std::size_t records = 0;  // how often it was recorded, and how many of these were passed
  std::size_t passed = 0;
  bool timing = false;
  bool destroyed = false;
  points behind = {};  // what it is behind

  bool is_complete() const { return passed == records; }
};

struct fake_driver::fake_stream {
  int device = 0;
  int priority = 0;
  bool is_default = false;
  bool destroyed = false;
  std::deque<operation> queue;
  std::uint64_t queued = 0;  // operations and allocations since the beginning
  points behind = {};        // what it has waited for
};

// The NUMA node from which the calling thread prefers memory.
static int preferred_node() {
  int mode = 0;
  unsigned long nodes[16] = {};
  if (syscall(SYS_get_mempolicy, &mode, nodes, 8 * sizeof nodes, nullptr, 0) != 0) return -1;
  if (mode != MPOL_PREFERRED) return -1;
  for (int node = 0; node < 64; ++node)
    if (nodes[0] >> node & 1) return node;
  return -1;
}

// What CUDA does not allow beside a capture in the default mode.
static bool ends_captures(std::string_view function) {
  constexpr std::array unsafe{"host_alloc",   "free_host",          "malloc_managed",
                              "free_memory",  "event_query",        "event_synchronize",
                              "stream_query", "stream_synchronize", "pool_trim"};
  return std::ranges::find(unsafe, function) != unsafe.end();
}

// The functions of the table.
struct fake_driver::table : runtime_api {
  static fake_driver& self() { return *current_driver; }

  template <class F>
  static cudaError_t locked(const char* function, F body) {
    std::lock_guard lock(self().mutex_);
    auto result = self().enter(function);
    if (result == cudaSuccess) result = body(self());
    if (result != cudaSuccess) last_failure = result;
    return result;
  }

  template <class F>
  static cudaError_t on_stream(const char* function, cudaStream_t stream, F body) {
    return locked(function, [&](fake_driver& it) {
      auto* found = it.stream_of(stream);
      return found ? body(it, *found) : cudaErrorInvalidResourceHandle;
    });
  }

  template <class F>
  static cudaError_t on_current_stream(const char* function, cudaStream_t stream, F body) {
    return on_stream(function, stream, [&](fake_driver& it, fake_stream& found) {
      if (found.device != current_index)
        it.fault(std::string(function) + " on a stream of a device that is not current");
      return body(it, found);
    });
  }

  template <class F>
  static cudaError_t on_event(const char* function, cudaEvent_t event, F body) {
    return locked(function, [&](fake_driver& it) {
      auto* found = it.event_of(event);
      return found ? body(it, *found) : cudaErrorInvalidResourceHandle;
    });
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
      return locked("device_get_attribute", [&](fake_driver& it) {
        switch (attribute) {
          case cudaDevAttrComputeCapabilityMajor: *value = 9; break;
          case cudaDevAttrComputeCapabilityMinor: *value = 0; break;
          case cudaDevAttrHostNumaId: *value = it.options_.numa_node; break;
          case cudaDevAttrConcurrentManagedAccess:
            *value = it.options_.has_concurrent_managed;
            break;
          default: it.fault("an attribute that the driver does not know");
        }
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
        it.require_no_reactor("waits for a device");
        auto is_idle = [](auto& each) {
          return each.device != current_index || each.queue.empty();
        };
        auto result = it.wait_until([&] { return std::ranges::all_of(it.streams_, is_idle); });
        for (auto& each : it.streams_)
          if (each.device == current_index) learn(it.known_, points_behind(each));
        return result;
      });
    };
    get_last_error = [] { return std::exchange(last_failure, cudaSuccess); };

    stream_create = [](cudaStream_t* stream, unsigned flags, int priority) {
      return locked("stream_create", [&](fake_driver& it) {
        if (flags != cudaStreamNonBlocking)
          it.fault("a stream that waits for the legacy default stream");
        auto& made = it.streams_.emplace_back();
        made.device = current_index;
        made.priority = priority;
        *stream = reinterpret_cast<cudaStream_t>(&made);
        return cudaSuccess;
      });
    };
    stream_destroy = [](cudaStream_t stream) {
      return on_stream("stream_destroy", stream, [](fake_driver& it, fake_stream& destroyed) {
        if (destroyed.is_default) it.fault("a default stream was destroyed");
        destroyed.destroyed = true;
        return cudaSuccess;
      });
    };
    stream_query = [](cudaStream_t stream) {
      return on_stream("stream_query", stream, [](fake_driver& it, fake_stream& asked) {
        if (!asked.queue.empty()) return cudaErrorNotReady;
        learn(it.known_, points_behind(asked));
        return cudaSuccess;
      });
    };
    stream_synchronize = [](cudaStream_t stream) {
      return on_stream("stream_synchronize", stream, [](fake_driver& it, fake_stream& awaited) {
        it.require_no_reactor("waits for a stream");
        auto behind = points_behind(awaited);
        auto result = it.wait_until([&] { return awaited.queue.empty(); });
        if (result == cudaSuccess) learn(it.known_, behind);
        return result;
      });
    };
    stream_wait_event = [](cudaStream_t stream, cudaEvent_t event, unsigned flags) {
      return on_current_stream("stream_wait_event", stream, [&](fake_driver& it, fake_stream& on) {
        auto* awaited = it.event_of(event);
        if (!awaited) return cudaErrorInvalidResourceHandle;
        if (flags != cudaEventWaitDefault) it.fault("unknown flags of a wait for an event");
        learn(on.behind, awaited->behind);
        it.queue(on, [awaited, until = awaited->records] { return awaited->passed >= until; });
        return cudaSuccess;
      });
    };
    launch_host_func = [](cudaStream_t stream, cudaHostFn_t function, void* argument) {
      return on_current_stream("launch_host_func", stream, [&](fake_driver& it, fake_stream& on) {
        it.require_no_reactor("queues a host function");
        auto call = [&it, function, argument, behind = points_behind(on)] {
          learn(it.known_, behind);
          in_host_function = true;
          function(argument);
          in_host_function = false;
          return true;
        };
        it.queue(on, call, true);
        return cudaSuccess;
      });
    };

    event_create = [](cudaEvent_t* event, unsigned flags) {
      return locked("event_create", [&](fake_driver& it) {
        if ((flags & ~unsigned{cudaEventDisableTiming}) != 0) it.fault("unknown flags of an event");
        auto& made = it.events_.emplace_back();
        made.device = current_index;
        made.timing = (flags & cudaEventDisableTiming) == 0;
        *event = reinterpret_cast<cudaEvent_t>(&made);
        return cudaSuccess;
      });
    };
    event_destroy = [](cudaEvent_t event) {
      return on_event("event_destroy", event, [](fake_driver&, fake_event& destroyed) {
        destroyed.destroyed = true;
        return cudaSuccess;
      });
    };
    event_record = [](cudaEvent_t event, cudaStream_t stream) {
      return on_current_stream("event_record", stream, [&](fake_driver& it, fake_stream& on) {
        auto* recorded = it.event_of(event);
        if (!recorded) return cudaErrorInvalidResourceHandle;
        if (recorded->device != on.device) it.fault("an event of another device was recorded");
        auto number = ++recorded->records;
        recorded->behind = points_behind(on);
        it.queue(on, [recorded, number] {
          recorded->passed = std::max(recorded->passed, number);
          return true;
        });
        return cudaSuccess;
      });
    };
    event_query = [](cudaEvent_t event) {
      return on_event("event_query", event, [](fake_driver& it, fake_event& asked) {
        if (!asked.is_complete()) return cudaErrorNotReady;
        learn(it.known_, asked.behind);
        return cudaSuccess;
      });
    };
    event_synchronize = [](cudaEvent_t event) {
      return on_event("event_synchronize", event, [](fake_driver& it, fake_event& awaited) {
        it.require_no_reactor("waits for an event");
        auto result = it.wait_until([&] { return awaited.is_complete(); });
        if (result == cudaSuccess) learn(it.known_, awaited.behind);
        return result;
      });
    };
    event_elapsed_time = [](float* milliseconds, cudaEvent_t from, cudaEvent_t to) {
      return locked("event_elapsed_time", [&](fake_driver& it) {
        auto *first = it.event_of(from), *last = it.event_of(to);
        if (!first || !last || !first->timing || !last->timing || first->device != last->device)
          return cudaErrorInvalidResourceHandle;
        if (!first->is_complete() || !last->is_complete()) return cudaErrorNotReady;
        *milliseconds = 1;
        return cudaSuccess;
      });
    };

    host_alloc = [](void** memory, std::size_t bytes, unsigned flags) {
      return locked("host_alloc", [&](fake_driver& it) {
        it.require_no_reactor("pins memory");
        if ((flags & ~unsigned{cudaHostAllocPortable}) != 0) it.fault("unknown flags of pinning");
        *memory = it.allocate(bytes, memory_kind::pinned);
        if (!*memory) return cudaErrorMemoryAllocation;
        it.pinnings_.push_back({current_index, preferred_node()});
        return cudaSuccess;
      });
    };
    free_host = [](void* memory) {
      return locked("free_host",
                    [&](fake_driver& it) { return it.free_now(memory, memory_kind::pinned); });
    };
    malloc_managed = [](void** memory, std::size_t bytes, unsigned flags) {
      return locked("malloc_managed", [&](fake_driver& it) {
        it.require_no_reactor("allocates managed memory");
        if (flags != cudaMemAttachGlobal) it.fault("managed memory that not all streams may use");
        *memory = it.allocate(bytes, memory_kind::managed);
        return *memory ? cudaSuccess : cudaErrorMemoryAllocation;
      });
    };
    free_memory = [](void* memory) {
      return locked("free_memory",
                    [&](fake_driver& it) { return it.free_now(memory, memory_kind::managed); });
    };
    malloc_async = [](void** memory, std::size_t bytes, cudaStream_t stream) {
      return on_current_stream("malloc_async", stream, [&](fake_driver& it, fake_stream& on) {
        *memory = it.allocate(bytes, memory_kind::device);
        if (!*memory) return cudaErrorMemoryAllocation;
        it.owner_of(*memory)->second.allocated = {&on, ++on.queued};
        return cudaSuccess;
      });
    };
    free_async = [](void* memory, cudaStream_t stream) {
      return on_current_stream("free_async", stream, [&](fake_driver& it, fake_stream& on) {
        return it.queue_free(on, memory);
      });
    };
    get_default_pool = [](cudaMemPool_t* pool, int index) {
      return locked("get_default_pool", [&](fake_driver& it) {
        if (index < 0 || index >= it.options_.devices) return cudaErrorInvalidDevice;
        *pool = reinterpret_cast<cudaMemPool_t>(&it.pool_keeps_[static_cast<std::size_t>(index)]);
        return cudaSuccess;
      });
    };
    exchange_capture_mode = [](cudaStreamCaptureMode* mode) {
      std::swap(capture_mode, *mode);
      return cudaSuccess;
    };
    pool_get_attribute = [](cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value) {
      return locked("pool_get_attribute", [&](fake_driver& it) {
        auto* found = it.threshold_of(pool, attribute);
        if (!found) return cudaErrorInvalidValue;
        *static_cast<std::uint64_t*>(value) = *found;
        return cudaSuccess;
      });
    };
    pool_set_attribute = [](cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value) {
      return locked("pool_set_attribute", [&](fake_driver& it) {
        auto* found = it.threshold_of(pool, attribute);
        if (!found) return cudaErrorInvalidValue;
        *found = *static_cast<std::uint64_t*>(value);
        return cudaSuccess;
      });
    };
    pool_trim = [](cudaMemPool_t pool, std::size_t) {
      return locked("pool_trim", [&](fake_driver& it) {
        auto* found = it.threshold_of(pool, cudaMemPoolAttrReleaseThreshold);
        return found ? cudaSuccess : cudaErrorInvalidValue;
      });
    };
    memcpy_async = [](void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                      cudaStream_t stream) {
      return on_current_stream("memcpy_async", stream, [&](fake_driver& it, fake_stream& on) {
        bool any = kind == cudaMemcpyDefault;
        bool from_host = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyHostToHost;
        bool to_host = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyHostToHost;
        it.require_kind(from, any || from_host, any || !from_host);
        it.require_kind(to, any || to_host, any || !to_host);
        return it.queue_copy(on, to, from, bytes);
      });
    };
  }
};

fake_driver::fake_driver(const options& how)
    : options_(how), pool_keeps_(static_cast<std::size_t>(how.devices)) {
  static const table functions;
  current_driver = this;
  current_index = 0;
  last_failure = cudaSuccess;
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

// What callbacks own that have not been called would be lost: a driver whose device has failed
// calls nobody back, and the end of a runtime does not wait for the callbacks of events that nobody
// awaits.
void fake_driver::return_arguments() {
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
  if (captures_ && capture_mode == cudaStreamCaptureModeGlobal && ends_captures(function)) {
    fault(std::string(function) + " ended a capture");
    return cudaErrorStreamCaptureUnsupported;
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

void fake_driver::require_no_reactor(const char* doing) {
  if (is_reactor()) fault(std::string("a reactor ") + doing);
}

// One for all threads, or one of the calling thread, of the current device.
fake_driver::fake_stream& fake_driver::default_stream(bool of_thread) {
  auto thread = of_thread ? std::this_thread::get_id() : std::thread::id();
  auto& found = default_streams_[{thread, current_index}];
  if (!found) {
    found = &streams_.emplace_back();
    found->device = current_index;
    found->is_default = true;
  }
  return *found;
}

fake_driver::fake_stream* fake_driver::stream_of(cudaStream_t handle) {
  if (!handle || handle == cudaStreamLegacy) return &default_stream(false);
  if (handle == cudaStreamPerThread) return &default_stream(true);
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

std::uint64_t* fake_driver::threshold_of(cudaMemPool_t pool, cudaMemPoolAttr attribute) {
  for (auto& each : pool_keeps_)
    if (reinterpret_cast<cudaMemPool_t>(&each) == pool &&
        attribute == cudaMemPoolAttrReleaseThreshold)
      return &each;
  fault("a pool or an attribute that does not exist was used");
  return nullptr;
}

void fake_driver::queue(fake_stream& on, std::function<bool()> run, bool is_host_function) {
  on.queue.push_back({std::move(run), is_host_function});
  ++on.queued;
  changed_.notify_all();
}

cudaError_t fake_driver::queue_copy(fake_stream& on, void* to, const void* from,
                                    std::size_t bytes) {
  queue(on, [this, to, from, bytes] {
    if (may_access(to, bytes) && may_access(from, bytes)) std::memcpy(to, from, bytes);
    return true;
  });
  use(on, to);
  use(on, from);
  return cudaSuccess;
}

cudaError_t fake_driver::queue_free(fake_stream& on, void* memory) {
  auto* found = owner_of(memory);
  if (!found || found->first != memory || found->second.kind != memory_kind::device ||
      found->second.returned) {
    fault("memory was freed that is not allocated");
    return cudaErrorInvalidValue;
  }
  auto& freed = found->second;
  use(on, memory);
  for (auto& [user, number] : freed.uses)
    if (!is_behind(on, {user, number}))
      fault("memory is freed on a stream that does not wait for another that uses it");
  freed.returned = true;
  queue(on, [this, &freed, memory] {
    free_now(freed, memory);
    return true;
  });
  return cudaSuccess;
}

void fake_driver::learn(points& known, const points& more) {
  for (auto& [on, number] : more) {
    auto& last = known[on];
    last = std::max(last, number);
  }
}

// What work that is queued from now on is behind.
fake_driver::points fake_driver::points_behind(const fake_stream& all) {
  auto behind = all.behind;
  behind[&all] = all.queued;
  return behind;
}

bool fake_driver::is_behind(const fake_stream& on, const point& earlier) const {
  auto knows = [&](const points& known) {
    auto found = known.find(earlier.on);
    return found != known.end() && found->second >= earlier.number;
  };
  return &on == earlier.on || knows(on.behind) || knows(known_);
}

// Until it is done, runs what can run, as the GPU would.
cudaError_t fake_driver::wait_until(const std::function<bool()>& done) {
  while (!done()) {
    if (broken_ != cudaSuccess) return broken_;
    if (!run_one()) changed_.wait(mutex_);
  }
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
    changed_.notify_all();
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

void fake_driver::begin_capture() {
  std::lock_guard lock(mutex_);
  captures_ = true;
}

void fake_driver::call_library(const std::string& function) {
  if (!current_driver || capture_mode != cudaStreamCaptureModeGlobal) return;
  std::lock_guard lock(current_driver->mutex_);
  if (current_driver->captures_) current_driver->fault(function + " ended a capture");
}

void fake_driver::end_capture() {
  std::lock_guard lock(mutex_);
  captures_ = false;
}

void fake_driver::break_device(cudaError_t with) {
  {
    std::lock_guard lock(mutex_);
    broken_ = with;
  }
  changed_.notify_all();
}

std::function<void()> fake_driver::block(cudaStream_t stream) {
  std::lock_guard lock(mutex_);
  auto open = std::make_shared<bool>(false);
  queue(*stream_of(stream), [open] { return *open; });
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
  auto is_made = [&](auto& each) { return lives(each) && !each.is_default; };
  counts.streams = static_cast<std::size_t>(std::ranges::count_if(streams_, is_made));
  counts.events = static_cast<std::size_t>(std::ranges::count_if(events_, lives));
  auto bytes_of = [&](memory_kind kind) {
    std::size_t sum = 0;
    for (auto& [memory, each] : memory_)
      if (!each.freed && each.kind == kind) sum += each.bytes;
    return sum;
  };
  counts.pinned_bytes = bytes_of(memory_kind::pinned);
  counts.device_bytes = bytes_of(memory_kind::device);
  counts.managed_bytes = bytes_of(memory_kind::managed);
  return counts;
}

std::uint64_t fake_driver::pool_keeps(int device) const {
  std::lock_guard lock(mutex_);
  return pool_keeps_.at(static_cast<std::size_t>(device));
}

int fake_driver::priority_of(cudaStream_t stream) {
  std::lock_guard lock(mutex_);
  return stream_of(stream)->priority;
}

std::vector<fake_driver::pinning> fake_driver::pinnings() const {
  std::lock_guard lock(mutex_);
  return pinnings_;
}

std::size_t fake_driver::queued() const {
  std::lock_guard lock(mutex_);
  std::size_t sum = 0;
  for (auto& each : streams_) sum += each.queue.size();
  return sum;
}

// Freed memory stays, so that its use is noticed.
void* fake_driver::allocate(std::size_t bytes, memory_kind kind) {
  auto now = live();
  auto [used, limit] = kind == memory_kind::pinned
                           ? std::pair(now.pinned_bytes, options_.pinned_limit)
                           : std::pair(now.device_bytes + now.managed_bytes, options_.device_limit);
  if (bytes > limit - used) return nullptr;
  constexpr std::size_t alignment = 4096;
  auto memory = std::make_unique<std::byte[]>(bytes + alignment);
  void* first = memory.get();
  auto space = bytes + alignment;
  std::align(alignment, bytes, first, space);
  memory_.emplace(static_cast<std::byte*>(first),
                  allocation{bytes, kind, current_index, std::move(memory)});
  return first;
}

void fake_driver::free_now(allocation& freed, void* first) {
  freed.freed = true;
  std::memset(first, 0xDD, freed.bytes);
}

cudaError_t fake_driver::free_now(void* memory, memory_kind kind) {
  auto* found = owner_of(memory);
  if (!found || found->first != memory || found->second.freed || found->second.kind != kind) {
    fault("memory was freed that is not allocated");
    return cudaErrorInvalidValue;
  }
  free_now(found->second, memory);
  return cudaSuccess;
}

// Null for memory that is not the driver's, which is pageable memory of the host.
std::pair<std::byte* const, fake_driver::allocation>* fake_driver::owner_of(const void* memory) {
  auto* first = static_cast<const std::byte*>(memory);
  auto behind = memory_.upper_bound(const_cast<std::byte*>(first));
  if (behind == memory_.begin()) return nullptr;
  auto& found = *std::prev(behind);
  return first < found.first + found.second.bytes ? &found : nullptr;
}

void fake_driver::require_kind(const void* memory, bool of_host, bool of_device) {
  auto* found = owner_of(memory);
  auto kind = found ? found->second.kind : memory_kind::pinned;
  if (kind == memory_kind::pinned && !of_host) fault("a copy takes memory of the host for a GPU's");
  if (kind == memory_kind::device && !of_device)
    fault("a copy takes memory of a GPU for the host's");
}

// Work that is queued last on the stream uses the memory.
void fake_driver::use(const fake_stream& on, const void* memory) {
  auto* found = owner_of(memory);
  if (!found) return;
  auto& used = found->second;
  if (used.returned || used.freed) fault("memory is used that was freed");
  if (used.kind != memory_kind::device) return;
  if (used.device != on.device) fault("a stream uses memory of another GPU");
  if (!is_behind(on, used.allocated))
    fault("a stream uses memory that another has allocated, without waiting for it");
  used.uses[&on] = on.queued;
}

bool fake_driver::may_access(const void* memory, std::size_t bytes) {
  auto* found = owner_of(memory);
  if (!found) return true;
  auto& [begin, owner] = *found;
  auto* end = static_cast<const std::byte*>(memory) + bytes;
  if (owner.freed) fault("a copy used memory that was freed");
  if (end > begin + owner.bytes) fault("a copy went beyond its memory");
  return !owner.freed && end <= begin + owner.bytes;
}

}  // namespace lade::cuda
