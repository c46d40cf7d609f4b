// A CUDA runtime that does nothing, for measuring what lade itself costs.

#pragma once

#include "../../cuda/runtime_api.hpp"

#include <cstddef>
#include <cstdlib>

namespace lade::cuda {

// One GPU, whose copies copy nothing. An event has been passed when it is asked for the second time
// after it was recorded, and callbacks come at once: so lade waits for each event as it does with a
// real driver.
struct idle_driver : runtime_api {
  struct point {
    int asked;
  };

  static cudaError_t make_stream(cudaStream_t* stream, unsigned, int) {
    static point made{};
    return *stream = reinterpret_cast<cudaStream_t>(&made), cudaSuccess;
  }
  static cudaError_t make_event(cudaEvent_t* event, unsigned) {
    return *event = reinterpret_cast<cudaEvent_t>(new point{1}), cudaSuccess;
  }
  static cudaError_t allocate(void** memory, std::size_t bytes) {
    *memory = std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
    return *memory ? cudaSuccess : cudaErrorMemoryAllocation;
  }
  static void* block_of_gpu() {
    alignas(4096) static std::byte block[4096];
    return block;
  }

  idle_driver() {
    get_device_count = [](int* count) { return *count = 1, cudaSuccess; };
    get_device = [](int* index) { return *index = 0, cudaSuccess; };
    set_device = [](int) { return cudaSuccess; };
    device_get_attribute = [](int* value, cudaDeviceAttr, int) { return *value = -1, cudaSuccess; };
    get_last_error = [] { return cudaSuccess; };
    stream_create = make_stream;
    stream_destroy = [](cudaStream_t) { return cudaSuccess; };
    stream_query = [](cudaStream_t) { return cudaSuccess; };
    stream_synchronize = [](cudaStream_t) { return cudaSuccess; };
    stream_wait_event = [](cudaStream_t, cudaEvent_t, unsigned) { return cudaSuccess; };
    launch_host_func = [](cudaStream_t, cudaHostFn_t call, void* argument) {
      return call(argument), cudaSuccess;
    };
    exchange_capture_mode = [](cudaStreamCaptureMode*) { return cudaSuccess; };
    event_create = make_event;
    event_destroy = [](cudaEvent_t event) {
      return delete reinterpret_cast<point*>(event), cudaSuccess;
    };
    event_record = [](cudaEvent_t event, cudaStream_t) {
      return reinterpret_cast<point*>(event)->asked = 0, cudaSuccess;
    };
    event_query = [](cudaEvent_t event) {
      return reinterpret_cast<point*>(event)->asked++ > 0 ? cudaSuccess : cudaErrorNotReady;
    };
    event_synchronize = [](cudaEvent_t) { return cudaSuccess; };
    host_alloc = [](void** memory, std::size_t bytes, unsigned) { return allocate(memory, bytes); };
    free_host = [](void* memory) { return std::free(memory), cudaSuccess; };
    malloc_async = [](void** memory, std::size_t, cudaStream_t) {
      return *memory = block_of_gpu(), cudaSuccess;
    };
    free_async = [](void*, cudaStream_t) { return cudaSuccess; };
    get_default_pool = [](cudaMemPool_t* pool, int) { return *pool = nullptr, cudaSuccess; };
    pool_get_attribute = [](cudaMemPool_t, cudaMemPoolAttr, void*) { return cudaSuccess; };
    pool_set_attribute = [](cudaMemPool_t, cudaMemPoolAttr, void*) { return cudaSuccess; };
    memcpy_async = [](void*, const void*, std::size_t, cudaMemcpyKind, cudaStream_t) {
      return cudaSuccess;
    };
  }
};

}  // namespace lade::cuda
