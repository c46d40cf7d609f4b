// to_device: copies batches to a GPU.

#pragma once

#include <lade/cuda/device_batch.hpp>
#include <lade/cuda/memory.hpp>
#include <lade/pipeline.hpp>
#include <lade/runtime.hpp>
#include <lade/sample_batch.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lade::cuda {

struct to_device_options {
  int device = 0;  // index of the GPU

  // Number of batches that are copied ahead of the next stage: 1 to 1,048,576. For the memory of
  // the GPU, see to_device().
  unsigned buffers = 2;

  // Tensors with fixed addresses on the GPU, for CUDA graphs. A tensor of a batch is copied to the
  // tensor with its name; labels have the name "labels". See to_device().
  std::span<const named_tensor> into = {};

  // The resource of GPU memory; null: the default pool of the device (device_memory). Lifetime: see
  // memory_resource.hpp.
  device_resource* memory = nullptr;

  // The resource of host memory, into which a preceding batch_into() writes batches, and in which
  // batches in pageable memory are staged. Null: pinned memory of the runtime, at most 1.25 times
  // its budget plus 32 MiB. Its where() must be cuda_host or cuda_managed. Lifetime: see
  // memory_resource.hpp.
  memory_resource* host_memory = nullptr;

  std::string_view name = {};  // in statistics and errors; "to_device" if empty
};

namespace detail {

class to_device_settings {
 public:
  explicit to_device_settings(const to_device_options& options);

  const to_device_options& options() const noexcept { return options_; }
  const std::string& name() const noexcept { return name_; }

  // Returns the tensor of that name in `into`; null if there is none.
  const tensor* find_fixed(const std::string& name) const noexcept;
  std::span<const named_tensor> into() const noexcept { return into_; }

  // The contents of the tensors of `into`; null if there are none.
  const std::shared_ptr<fixed_tensors>& fixed() const noexcept { return fixed_; }

 private:
  void require_pinned(const memory_resource& memory) const;
  void require_into(const named_tensor& each) const;

  to_device_options options_;
  std::shared_ptr<memory_resource> memory_, host_memory_;  // owners of the resources of the options
  std::string name_;
  std::vector<named_tensor> into_;
  std::shared_ptr<fixed_tensors> fixed_;
};

}  // namespace detail

class to_device_stage {
 public:
  explicit to_device_stage(const to_device_options& options)
      : settings_(std::make_shared<const detail::to_device_settings>(options)) {}

  pipeline<device_batch> attach(const pipeline<sample_batch>& in) const;

 private:
  std::shared_ptr<const detail::to_device_settings> settings_;
};

// Copies sample batches to a GPU, on a stream of the stage. The copies overlap with the previous
// stages and with the GPU's work. A batch is delivered as soon as its copies are queued; see
// device_batch for how other streams wait for them.
//
//   auto batches = samples
//                | lade::batch_into(writer, {.size = 256})
//                | lade::cuda::to_device({.device = 0, .buffers = 2});
//
// The tensors keep their names. Labels become a tensor if a sample has one. The samples, with their
// keys, text and other fields, stay in host memory and are delivered with the batch.
//
// A batch_into() before this stage writes its batches to pinned memory, from which the GPU
// copies. Other batches are staged: first copied to pinned memory.
// transfer_statistics::staged_bytes counts them.
//
// Memory of the GPU: if this is the last stage of a run, it holds at most `buffers` +
// run_options::ready + 1 batches: those of the stage, the ready ones, and the one in the loop.
// Batches that the program keeps, and those of later stages, are additional.
//
// Host memory is kept until the copies from it have finished, even if the run is stopped or fails.
// The end of the run does not wait for the copies; the end of the runtime does.
//
// With `into`, every batch uses the given tensors. The first wait_on() of a batch queues a copy to
// them on its stream, so each step finds its batch at the same addresses:
// - A batch is valid until another one is copied there. Then its wait_on() throws
//   error(invalid_argument). Samples and ready() stay valid.
// - The copy waits for the work that is queued at that time on the streams of the previous batch.
// - Each batch must fit: the same type and shape, except that it may have fewer samples, and a
//   tensor for each given one. A shorter batch leaves the rest of the fixed tensors unchanged.
// - The tensors must not overlap. A run throws error(invalid_argument) naming them while a run or
//   a batch of another stage uses their memory. Only one run of a stage at a time may use its
//   batches. to_host() refuses them, because it copies several batches at a time.
//
// Throws error(invalid_argument) naming an invalid option. A run fails if the GPU does not exist. A
// failure of the GPU ends the run, regardless of `on_error`.
//
// Not yet run on a GPU: tested only with a fake driver.
inline to_device_stage to_device(const to_device_options& options = {}) {
  return to_device_stage(options);
}

// Counts of the copies between host and GPUs, for all runs of a runtime.
struct transfer_statistics {
  std::uint64_t batches = 0;
  std::uint64_t bytes = 0;         // copied bytes
  std::uint64_t staged_bytes = 0;  // bytes that were staged: copied from pageable to pinned memory
                                   // first
  std::size_t pinned_bytes = 0;    // pinned memory of the runtime
  std::size_t fallback_bytes = 0;  // memory that could not be pinned
};

transfer_statistics transfers_of(runtime& where);

}  // namespace lade::cuda
