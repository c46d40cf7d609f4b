// Defines the mark of functions that kernels call. A header includes it last, and undefines the
// mark at its end: no macro survives a file.

#if defined(__CUDACC__)
#define LADE_GRID_CODE __host__ __device__ inline
#else
#define LADE_GRID_CODE inline
#endif
