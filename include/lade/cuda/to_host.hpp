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
  unsigned buffers = 2;  // batches that are copied ahead of the next stage: 1 to 1,048,576

  // Where the tensors are copied to; null: pinned memory that the runtime keeps. The CPU must be
  // able to write it. Lifetime: see memory_resource.hpp.
  memory_resource* memory = nullptr;

  std::string_view name = {};  // in statistics and errors; "to_host" if not given
};

class to_host_stage {
 public:
  explicit to_host_stage(const to_host_options& options);

  pipeline<sample_batch> attach(const pipeline<device_batch>& in) const;

 private:
  to_host_options options_;                  // without the name
  std::shared_ptr<memory_resource> memory_;  // that of the options
  std::string name_;
};

// Copies batches of a GPU to pinned memory of the host, behind the work that writes them, and
// passes them on when they have arrived. No thread waits for that. Samples travel along; their
// labels are those of sample_batch::labels().
//
//   auto features = batches | lade::cuda::to_device() | lade::map(embed) | lade::cuda::to_host();
//
// The memory is within the budget of the runtime. After a stop, memory that the GPU still writes is
// kept until the copies have finished. The end of the run does not wait for that; the end of the
// runtime does.
//
// Tensors must be contiguous, and not those of to_device_options::into; others fail the run with
// error(invalid_argument).
//
// Throws error(invalid_argument) that names the option that cannot work. A failure of the GPU ends
// the run, whatever its `on_error` is.
//
// Not yet run on a GPU: tested over a driver that a test replaces.
inline to_host_stage to_host(const to_host_options& options = {}) { return to_host_stage(options); }

}  // namespace lade::cuda
