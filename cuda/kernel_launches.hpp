// The kernels. Each is reached by a function that enqueues it on a stream of the current device and
// returns a cudaError_t: 0 is success. What it is given is copied before it returns.

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

// The table that the public functions launch through: the functions above, unless a test has
// replaced them.
struct kernel_launches {
  int (*copy)(const byte_copy& copy, CUstream_st* on) = launch_copy;
  int (*convert)(const convert_batch& batch, CUstream_st* on) = launch_convert;
  int (*layout)(const layout_change& change, CUstream_st* on) = launch_layout;
  int (*resample)(const resample_batch& batch, CUstream_st* on) = launch_resample;
};

const kernel_launches& current_launches() noexcept;

// For tests: launches go through `table` from now on, which must live as long; null is the kernels.
void replace_launches(const kernel_launches* table) noexcept;

}  // namespace lade::cuda
