// Ranges for NVIDIA's profilers.

#pragma once

#include <lade/hooks.hpp>

#include <cstdint>
#include <exception>
#include <mutex>
#include <string_view>
#include <unordered_map>

struct nvtxDomainRegistration_st;  // of <nvtx3/nvToolsExt.h>

namespace lade::cuda {

struct nvtx_api;

// Marks the activity of a run in the timelines of Nsight Systems and other profilers that read
// NVTX. There is a range for every stage, and one for every call of a stage's function, named
// "decode_image a.jpg". The ranges are in the domain "lade".
//
//   lade::cuda::nvtx_hooks ranges;
//   auto batches = runtime.run(pipeline, {.hooks = &ranges});
//
// Without a profiler, a range costs a few calls through null pointers, and no lock.
//
// Thread: any, concurrently. Must outlive the runs.
//
// Not yet run under a profiler: tested only with fake functions.
class nvtx_hooks final : public run_hooks {
 public:
  nvtx_hooks();
  explicit nvtx_hooks(const nvtx_api& functions);  // for tests
  nvtx_hooks(const nvtx_hooks&) = delete;
  ~nvtx_hooks() override;

  void enter_stage(std::string_view stage) override;
  void leave_stage(std::string_view stage, const std::exception_ptr& failure) override;
  void enter_item(const item_call& call) override;
  void leave_item(const item_call& call, const std::exception_ptr& failure) override;

 private:
  std::uint64_t begin(std::string_view stage, std::string_view item) const;

  const nvtx_api& functions_;
  nvtxDomainRegistration_st* domain_;  // null without a profiler
  std::mutex mutex_;
  std::unordered_map<const void*, std::uint64_t> stages_;  // guarded by the mutex
};

}  // namespace lade::cuda
