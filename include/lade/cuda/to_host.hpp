// to_host: copies batches from a GPU.

#pragma once

#include <lade/cuda/device_batch.hpp>
#include <lade/memory_resource.hpp>
#include <lade/pipeline.hpp>
#include <lade/sample_batch.hpp>

#include <memory>
#include <string>
#include <string_view>

namespace lade::cuda {

struct to_host_options {
  unsigned buffers = 2;  // number of batches copied ahead of the next stage: 1 to 1,048,576

  // The resource of the copies; null: pinned memory of the runtime. The CPU must be able to write
  // it. Lifetime: see memory_resource.hpp.
  memory_resource* memory = nullptr;

  std::string_view name = {};  // in statistics and errors; "to_host" if empty
};

class to_host_stage {
 public:
  explicit to_host_stage(const to_host_options& options);

  pipeline<sample_batch> attach(const pipeline<device_batch>& in) const;

 private:
  to_host_options options_;                  // without the name
  std::shared_ptr<memory_resource> memory_;  // owner of the resource of the options
  std::string name_;
};

// Copies batches of a GPU to pinned memory of the host, after the work that writes them. Delivers a
// batch when its copies have finished. No thread waits for that. Samples are delivered with the
// batch; their labels are those of sample_batch::labels().
//
//   auto features = batches | lade::cuda::to_device() | lade::map(embed) | lade::cuda::to_host();
//
// The memory counts to the budget of the runtime. After a stop, memory that the GPU still writes is
// kept until the copies have finished. The end of the run does not wait for the copies; the end of
// the runtime does.
//
// Tensors must be contiguous, and must not be those of to_device_options::into. Other tensors fail
// the run with error(invalid_argument).
//
// Throws error(invalid_argument) naming an invalid option. A failure of the GPU ends the run,
// regardless of `on_error`.
//
// Not yet run on a GPU: tested only with a fake driver.
inline to_host_stage to_host(const to_host_options& options = {}) { return to_host_stage(options); }

}  // namespace lade::cuda
