// A CUDA driver and NCCL in one library, whose GPUs are host memory and which adds up by MPI. The
// environment says how many GPUs there are, FAKE_GPUS, and whether sums fail, FAKE_NCCL_FAILS.

#include <mpi.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>

struct fake_unique_id {
  char bytes[128];
};

static const int fake_mark = 4711;  // what the id of rank 0 begins with

extern "C" {

int cuInit(unsigned) { return 0; }
int cuDeviceGetCount(int* count) {
  const char* text = std::getenv("FAKE_GPUS");
  *count = text ? std::atoi(text) : 0;
  return 0;
}
int cuDeviceGet(int* device, int number) {
  *device = number;
  return 0;
}
int cuDevicePrimaryCtxRetain(void** context, int) {
  *context = nullptr;
  return 0;
}
int cuCtxSetCurrent(void*) { return 0; }
int cuMemAlloc_v2(unsigned long long* address, std::size_t bytes) {
  *address = reinterpret_cast<unsigned long long>(std::malloc(bytes));
  return 0;
}
int cuMemcpyHtoD_v2(unsigned long long to, const void* from, std::size_t bytes) {
  std::memcpy(reinterpret_cast<void*>(to), from, bytes);
  return 0;
}
int cuMemcpyDtoH_v2(void* to, unsigned long long from, std::size_t bytes) {
  std::memcpy(to, reinterpret_cast<const void*>(from), bytes);
  return 0;
}

int ncclGetUniqueId(fake_unique_id* id) {
  std::memcpy(id->bytes, &fake_mark, sizeof fake_mark);
  return 0;
}
int ncclCommInitRank(void** communicator, int ranks, fake_unique_id id, int rank) {
  int real_ranks = 0, real_rank = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &real_ranks);
  MPI_Comm_rank(MPI_COMM_WORLD, &real_rank);
  *communicator = nullptr;
  bool right = std::memcmp(id.bytes, &fake_mark, sizeof fake_mark) == 0;
  return right && ranks == real_ranks && rank == real_rank ? 0 : 4;
}
int ncclAllReduce(const void*, void* numbers, std::size_t count, int type, int operation, void*,
                  void*) {
  if (type != 8 || operation != 0) return 4;
  if (std::getenv("FAKE_NCCL_FAILS")) return 3;
  return MPI_Allreduce(MPI_IN_PLACE, numbers, static_cast<int>(count), MPI_DOUBLE, MPI_SUM,
                       MPI_COMM_WORLD);
}
const char* ncclGetErrorString(int) { return "internal error"; }
}
