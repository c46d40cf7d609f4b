// The table of CUDA runtime functions that lade calls, which tests can replace.

#pragma once

#include <cstddef>

#include <cuda_runtime_api.h>

namespace lade::cuda {

struct runtime_api {
  // Devices.
  decltype(&::cudaGetDeviceCount) get_device_count = ::cudaGetDeviceCount;
  decltype(&::cudaGetDevice) get_device = ::cudaGetDevice;
  decltype(&::cudaSetDevice) set_device = ::cudaSetDevice;
  decltype(&::cudaDeviceGetAttribute) device_get_attribute = ::cudaDeviceGetAttribute;
  decltype(&::cudaGetDeviceProperties) get_device_properties = ::cudaGetDeviceProperties;
  decltype(&::cudaMemGetInfo) mem_get_info = ::cudaMemGetInfo;
  decltype(&::cudaDeviceSynchronize) device_synchronize = ::cudaDeviceSynchronize;
  decltype(&::cudaGetLastError) get_last_error = ::cudaGetLastError;

  // Streams.
  decltype(&::cudaStreamCreateWithPriority) stream_create = ::cudaStreamCreateWithPriority;
  decltype(&::cudaStreamDestroy) stream_destroy = ::cudaStreamDestroy;
  decltype(&::cudaStreamQuery) stream_query = ::cudaStreamQuery;
  decltype(&::cudaStreamSynchronize) stream_synchronize = ::cudaStreamSynchronize;
  decltype(&::cudaStreamWaitEvent) stream_wait_event = ::cudaStreamWaitEvent;
  decltype(&::cudaLaunchHostFunc) launch_host_func = ::cudaLaunchHostFunc;
  decltype(&::cudaThreadExchangeStreamCaptureMode) exchange_capture_mode =
      ::cudaThreadExchangeStreamCaptureMode;

  // Events.
  decltype(&::cudaEventCreateWithFlags) event_create = ::cudaEventCreateWithFlags;
  decltype(&::cudaEventDestroy) event_destroy = ::cudaEventDestroy;
  decltype(&::cudaEventRecord) event_record = ::cudaEventRecord;
  decltype(&::cudaEventQuery) event_query = ::cudaEventQuery;
  decltype(&::cudaEventSynchronize) event_synchronize = ::cudaEventSynchronize;
  decltype(&::cudaEventElapsedTime) event_elapsed_time = ::cudaEventElapsedTime;

  // Memory.
  decltype(&::cudaHostAlloc) host_alloc = ::cudaHostAlloc;
  decltype(&::cudaFreeHost) free_host = ::cudaFreeHost;
  cudaError_t (*malloc_managed)(void**, std::size_t, unsigned) = ::cudaMallocManaged;
  decltype(&::cudaFree) free_memory = ::cudaFree;
  cudaError_t (*malloc_async)(void**, std::size_t, cudaStream_t) = ::cudaMallocAsync;
  decltype(&::cudaFreeAsync) free_async = ::cudaFreeAsync;
  decltype(&::cudaDeviceGetDefaultMemPool) get_default_pool = ::cudaDeviceGetDefaultMemPool;
  decltype(&::cudaMemPoolSetAttribute) pool_set_attribute = ::cudaMemPoolSetAttribute;
  decltype(&::cudaMemPoolGetAttribute) pool_get_attribute = ::cudaMemPoolGetAttribute;
  decltype(&::cudaMemPoolTrimTo) pool_trim = ::cudaMemPoolTrimTo;
  decltype(&::cudaMemcpyAsync) memcpy_async = ::cudaMemcpyAsync;
};

// The table in use. Tests may replace it while no object of this module exists.
const runtime_api& api() noexcept;
void replace_api(const runtime_api* by) noexcept;  // null restores the runtime

}  // namespace lade::cuda
