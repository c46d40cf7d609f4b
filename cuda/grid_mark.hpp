// Defines the mark of functions that kernels call. Included behind the other includes of a header,
// which undefines the mark at its end: no macro survives a file.

#if defined(__CUDACC__)
#define LADE_GRID_CODE __host__ __device__ inline
#else
#define LADE_GRID_CODE inline
#endif
