// to_device: copies batches to a GPU.

#pragma once

#include <lade/cuda/device_batch.hpp>
#include <lade/cuda/memory.hpp>
#include <lade/detail/common/shared_const.hpp>
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
  int device = 0;  // the number of the GPU

  // How many batches are copied ahead of the next stage: 1 to 1,048,576. It does not bound the
  // memory of the GPU alone: see to_device().
  unsigned buffers = 2;

  // Tensors of fixed addresses on the GPU, for CUDA graphs: a tensor of a batch, or its labels
  // under the name "labels", are copied to the tensor of the same name. See to_device().
  std::span<const named_tensor> into = {};

  // Where memory of the GPU comes from; null: the default pool of the device (device_memory).
  // Lifetime: see memory_resource.hpp.
  device_resource* memory = nullptr;

  // Where batch_into() before this stage writes batches, and where batches in pageable memory are
  // staged; null: pinned memory that the runtime keeps, of at most a quarter and 32 MiB more than
  // its budget. Its where() must be cuda_host or cuda_managed. Lifetime: see memory_resource.hpp.
  memory_resource* host_memory = nullptr;

  std::string_view name = {};  // in statistics and errors; "to_device" if not given
};

namespace detail {

class to_device_settings {
 public:
  explicit to_device_settings(const to_device_options& options);

  const to_device_options& options() const noexcept { return options_; }
  const std::string& name() const noexcept { return name_; }

  // The tensor of that name in `into`; null if there is none.
  const tensor* find_fixed(const std::string& name) const noexcept;
  std::span<const named_tensor> into() const noexcept { return into_; }

  // What is in the tensors of `into`; null if there are none.
  const std::shared_ptr<fixed_tensors>& fixed() const noexcept { return fixed_; }

 private:
  void require_pinned(const memory_resource& memory) const;
  void require_into(const named_tensor& each) const;

  to_device_options options_;
  std::shared_ptr<memory_resource> memory_, host_memory_;  // those of the options
  std::string name_;
  std::vector<named_tensor> into_;
  std::shared_ptr<fixed_tensors> fixed_;
};

}  // namespace detail

class to_device_stage {
 public:
  explicit to_device_stage(const to_device_options& options)
      : settings_(detail::to_device_settings(options)) {}

  pipeline<device_batch> attach(const pipeline<sample_batch>& in) const;

 private:
  lade::detail::shared_const<detail::to_device_settings> settings_;
};

// Copies sample batches to a GPU, on a stream of the stage. The copies overlap with the stages
// before it and with the GPU's work. A batch is passed on as soon as its copies are queued; see
// device_batch for how other streams wait for it.
//
//   auto batches = samples
//                | lade::batch_into(writer, {.size = 256})
//                | lade::cuda::to_device({.device = 0, .buffers = 2});
//
// The tensors keep their names. Labels become a tensor, if a sample has one. The samples with their
// keys, text and other fields travel along in host memory.
//
// A batch_into() before this stage writes its batches to pinned memory, and the GPU copies them
// from there. Other batches are staged: copied to pinned memory first. They are counted in
// transfer_statistics::staged_bytes.
//
// Memory of the GPU: where this is the last stage of a run, `buffers` + run_options::ready + 1
// batches lie there at most: those of the stage, those that are ready, and the one in the loop.
// Batches that the program keeps, and those of stages behind this one, add to them.
//
// Host memory is kept until the copies from it have finished, also if the run is stopped or fails.
// The end of the run does not wait for that; the end of the runtime does.
//
// With `into`, the tensors of all batches are the given ones. The first wait_on() of a batch queues
// a copy to them, on the stream that it orders, so that each step finds its batch at the same
// addresses:
// - A batch is valid until another one is copied there; from then on its wait_on() throws
//   error(invalid_argument). Samples and ready() stay valid.
// - The copy waits for the work that is queued by then on the streams of the batch before.
// - Each batch must fit: the same type and shape, except that it may have fewer samples. It must
//   have a tensor for each given one. A shorter batch leaves the rest of the fixed tensors as it
//   was.
// - The tensors must not overlap. A run throws error(invalid_argument) that names them while a run
//   or a batch of another stage uses their memory. Let one run of a stage at a time use its
//   batches. to_host() refuses them: it copies several batches at a time.
//
// Throws error(invalid_argument) that names the option that cannot work. A run fails if there is no
// such GPU. A failure of the GPU ends the run, whatever its `on_error` is.
//
// Not yet run on a GPU: tested over a driver that a test replaces.
inline to_device_stage to_device(const to_device_options& options = {}) {
  return to_device_stage(options);
}

// The copies between host and GPUs of all runs of a runtime.
struct transfer_statistics {
  std::uint64_t batches = 0;
  std::uint64_t bytes = 0;         // that were copied
  std::uint64_t staged_bytes = 0;  // of these, copied from pageable memory to pinned memory first
  std::size_t pinned_bytes = 0;    // that the runtime keeps pinned
  std::size_t fallback_bytes = 0;  // that could not be pinned
};

transfer_statistics transfers_of(runtime& where);

}  // namespace lade::cuda
