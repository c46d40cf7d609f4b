// Batches of samples whose tensors are in memory of a GPU, for trainers.

#pragma once

#include <lade/cuda/device.hpp>
#include <lade/cuda/event.hpp>
#include <lade/cuda/memory.hpp>
#include <lade/cuda/stream.hpp>
#include <lade/sample.hpp>
#include <lade/sample_batch.hpp>
#include <lade/tensor.hpp>

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace lade::cuda {

class host_copies;

namespace detail {

class device_copies;
struct fixed_tensors;

// A tensor with a fixed address (`to`), and the tensor that is copied to it.
struct placement {
  lade::tensor from;
  lade::tensor to;
};

// The placements of a batch; empty without tensors of fixed addresses.
struct placements {
  std::shared_ptr<fixed_tensors> in;
  std::vector<placement> copies;
};

}  // namespace detail

// A sample_batch on a GPU. When a program receives the batch, the GPU may still be writing its
// tensors. wait_on() orders the work that reads them after the writes.
//
//   for (auto& batch : runtime.run(batches)) {
//     batch.wait_on(trainer);                  // orders the stream; this thread does not wait
//     step<<<..., trainer.handle()>>>(batch.tensor().data<float>(), ...);
//   }
//
// Lifetime: copies share the tensors. When the last copy is destroyed, the memory returns to its
// pool after the work that is queued by then on the streams of wait_on(). These streams must exist
// until then. A copy must not be destroyed in a callback of CUDA.
//
// Thread: any, concurrently.
//
// Not yet run on a GPU: tested only with a fake driver.
class device_batch {
 public:
  // For stages that create such batches. `blocks`: the memory of the tensors and labels. `ready`:
  // an event after the work that writes them. Throws error(invalid_argument)
  // - if there is no tensor, or two have the same name,
  // - if the first dimension of a tensor is not the number of samples,
  // - if `labels` is not contiguous i64 [samples.size()],
  // - if a tensor, the labels or a block is not in memory of the event's device. Managed memory
  //   is memory of every device.
  device_batch(std::vector<named_tensor> tensors, std::vector<sample> samples,
               std::optional<lade::tensor> labels, std::vector<device_block> blocks, event ready);

  std::size_t size() const noexcept;

  // The first tensor, and all of them.
  const lade::tensor& tensor() const noexcept;
  std::span<const named_tensor> tensors() const noexcept;

  // Returns the tensor of that name. If there is none, `find` returns null, and `[]` throws
  // error(invalid_argument) naming the existing tensors.
  const lade::tensor* find(std::string_view name) const noexcept;
  const lade::tensor& operator[](std::string_view name) const;

  // The labels as i64 [size()], with sample::no_label (-1) for a sample without one. `labels`
  // throws error(invalid_argument) if no sample has a label.
  bool has_labels() const noexcept;
  const lade::tensor& labels() const;

  // The samples, in host memory: keys, labels, and fields that are not tensors of the batch.
  const std::vector<sample>& samples() const noexcept;

  device on() const noexcept;

  // `co_await batch.ready()` resumes when the tensors have been written. wait_on() is cheaper. With
  // to_device_options::into, only wait_on() works, because it writes the tensors itself.
  const event& ready() const noexcept;

  // Orders the stream: work that is queued on it from now on sees the written tensors. Throws
  // error. With stream::per_thread_default, call record_on() after that work, on the same thread.
  //
  // With to_device_options::into, the first call copies the batch to the fixed tensors, after the
  // work of all streams that use the previous batch there. Later calls copy nothing. The batch is
  // valid until another one is copied there; then the call throws error(invalid_argument).
  void wait_on(const stream& user) const;

  // Declares that work which is queued on the stream from now on does not use the tensors. Without
  // this call, the memory returns after all work that is queued when the last copy is destroyed.
  // Valid also for a stream without wait_on(). Throws error.
  void record_on(const stream& user) const;

  // The size in bytes of the tensors and of the samples' fields in memory.
  std::size_t content_bytes() const;

 private:
  friend class detail::device_copies;
  friend class host_copies;
  struct contents;

  bool is_at_fixed_addresses() const noexcept;

  device_batch(std::vector<named_tensor> tensors, std::vector<sample> samples,
               std::optional<lade::tensor> labels, std::vector<device_block> blocks, event ready,
               detail::placements placements);

  std::shared_ptr<contents> contents_;
};

}  // namespace lade::cuda
