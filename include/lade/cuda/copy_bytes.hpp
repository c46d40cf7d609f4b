// A kernel that copies device memory: the reference for the speed of other kernels. Not yet run on
// a GPU.

#pragma once

#include <cstddef>

struct CUstream_st;  // of <cuda_runtime.h>: a cudaStream_t is a pointer to it

namespace lade::cuda {

class stream;

// Copies `bytes` bytes: 16 per thread if both addresses are multiples of 16, otherwise one.
// Programs should copy with cudaMemcpyAsync. This function measures the share of the memory
// bandwidth that a kernel reaches.
//
// The ranges must not overlap. Stream order, lifetimes and threads are those of write_images.
// Throws error(invalid_argument) for a null pointer, or 0 bytes.
void copy_bytes(const void* from, void* to, std::size_t bytes, CUstream_st* on);

// The same on a stream of any device.
void copy_bytes(const void* from, void* to, std::size_t bytes, const stream& on);

}  // namespace lade::cuda
