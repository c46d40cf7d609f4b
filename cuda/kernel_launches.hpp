// The functions that launch kernels. Each enqueues a kernel on a stream of the current device,
// copies its arguments, and returns a cudaError_t: 0 is success.

#pragma once

struct CUstream_st;

namespace lade::cuda {

struct byte_copy;
struct convert_batch;
struct layout_change;
struct resample_batch;

int launch_copy(const byte_copy& copy, CUstream_st* on);
int launch_convert(const convert_batch& batch, CUstream_st* on);
int launch_layout(const layout_change& change, CUstream_st* on);
int launch_resample(const resample_batch& batch, CUstream_st* on);

// The table of launches of the public functions: the functions above, unless a test replaces them.
struct kernel_launches {
  int (*copy)(const byte_copy& copy, CUstream_st* on) = launch_copy;
  int (*convert)(const convert_batch& batch, CUstream_st* on) = launch_convert;
  int (*layout)(const layout_change& change, CUstream_st* on) = launch_layout;
  int (*resample)(const resample_batch& batch, CUstream_st* on) = launch_resample;
};

const kernel_launches& current_launches() noexcept;

// For tests: replaces the table. `table` must outlive all launches; null restores the kernels.
void replace_launches(const kernel_launches* table) noexcept;

}  // namespace lade::cuda
