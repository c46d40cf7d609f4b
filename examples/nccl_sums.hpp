// Sums over all ranks by NCCL, on GPUs. The driver and NCCL are loaded at run time.

#pragma once

#include <lade/error.hpp>

#include <dlfcn.h>

#include <array>
#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <string>

#include "communicator.hpp"

// The functions of the driver and of NCCL that a sum needs, as cuda.h and nccl.h declare them.
struct nccl_functions {
  struct unique_id {
    std::array<char, 128> bytes;
  };
  static constexpr int f64 = 8, sum = 0;

  int (*init)(unsigned);
  int (*count_devices)(int*);
  int (*get_device)(int*, int number);
  int (*retain_context)(void**, int device);
  int (*set_context)(void*);
  int (*allocate)(unsigned long long*, std::size_t);
  int (*copy_to_device)(unsigned long long, const void*, std::size_t);
  int (*copy_to_host)(void*, unsigned long long, std::size_t);

  int (*get_unique_id)(unique_id*);
  int (*init_rank)(void**, int ranks, unique_id, int rank);
  int (*all_reduce)(const void*, void*, std::size_t, int type, int operation, void*, void* stream);
  const char* (*error_text)(int);

  // Returns false if a library or a function is missing. The libraries stay loaded.
  bool load() {
    void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    void* nccl = driver ? dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL) : nullptr;
    return nccl && find(driver, "cuInit", init) &&
           find(driver, "cuDeviceGetCount", count_devices) &&
           find(driver, "cuDeviceGet", get_device) &&
           find(driver, "cuDevicePrimaryCtxRetain", retain_context) &&
           find(driver, "cuCtxSetCurrent", set_context) &&
           find(driver, "cuMemAlloc_v2", allocate) &&
           find(driver, "cuMemcpyHtoD_v2", copy_to_device) &&
           find(driver, "cuMemcpyDtoH_v2", copy_to_host) &&
           find(nccl, "ncclGetUniqueId", get_unique_id) &&
           find(nccl, "ncclCommInitRank", init_rank) && find(nccl, "ncclAllReduce", all_reduce) &&
           find(nccl, "ncclGetErrorString", error_text);
  }

 private:
  template <class F>
  static bool find(void* library, const char* name, F*& function) {
    function = reinterpret_cast<F*>(dlsym(library, name));
    return function != nullptr;
  }
};

// Every call waits for the same call on the other ranks. Thread: the one that made the object. Its
// memory stays allocated until the process ends.
//
// Not yet run on a GPU: tested only with fake libraries.
class nccl_sums {
 public:
  // For sums of up to `most` numbers. Null, on all ranks alike, unless each rank has NCCL and a
  // separate GPU. Throws lade::error if they fail.
  static std::unique_ptr<nccl_sums> try_make(const communicator& ranks, std::size_t most) {
    nccl_functions call;
    int gpus = 0;
    bool usable = call.load() && call.init(0) == 0 && call.count_devices(&gpus) == 0 &&
                  ranks.local_rank() < gpus;
    if (!ranks.all(usable)) return nullptr;
    return std::unique_ptr<nccl_sums>(new nccl_sums(call, ranks, most));
  }

  // Replaces the numbers by their sums over all ranks.
  void sum(std::span<double> numbers) const {
    auto* on_gpu = reinterpret_cast<void*>(numbers_);
    check_cuda(call_.copy_to_device(numbers_, numbers.data(), numbers.size_bytes()));
    check_nccl(call_.all_reduce(on_gpu, on_gpu, numbers.size(), nccl_functions::f64,
                                nccl_functions::sum, communicator_, nullptr));
    check_cuda(call_.copy_to_host(numbers.data(), numbers_, numbers.size_bytes()));  // waits
  }

 private:
  nccl_sums(const nccl_functions& call, const communicator& ranks, std::size_t most) : call_(call) {
    int device = 0;
    void* context = nullptr;
    check_cuda(call_.get_device(&device, ranks.local_rank()));
    check_cuda(call_.retain_context(&context, device));
    check_cuda(call_.set_context(context));
    check_cuda(call_.allocate(&numbers_, most * sizeof(double)));
    nccl_functions::unique_id id{};
    if (ranks.rank() == 0) check_nccl(call_.get_unique_id(&id));
    auto text = ranks.broadcast(std::string(id.bytes.data(), id.bytes.size()));
    std::memcpy(id.bytes.data(), text.data(), id.bytes.size());
    check_nccl(call_.init_rank(&communicator_, static_cast<int>(ranks.size()), id,
                               static_cast<int>(ranks.rank())));
  }

  void check_nccl(int result) const {
    if (result != 0)
      throw lade::error(lade::errc::failed, "add up numbers by NCCL", call_.error_text(result));
  }
  static void check_cuda(int result) {
    if (result != 0)
      throw lade::error(lade::errc::failed, "add up numbers by NCCL",
                        "the CUDA driver returns error " + std::to_string(result));
  }

  nccl_functions call_;
  unsigned long long numbers_ = 0;  // on the GPU
  void* communicator_ = nullptr;
};
