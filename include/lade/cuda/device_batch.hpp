// What a trainer on a GPU gets: a batch of samples whose tensors are in memory of the GPU.

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

// A tensor with a fixed address, and the tensor that is copied to it.
struct placement {
  lade::tensor from;
  lade::tensor to;
};

// Those of a batch; none without tensors of fixed addresses.
struct placements {
  std::shared_ptr<fixed_tensors> in;
  std::vector<placement> copies;
};

}  // namespace detail

// A sample_batch on a GPU. The tensors may still be written when a program gets the batch: work
// that reads them is ordered behind that by wait_on().
//
//   for (auto& batch : runtime.run(batches)) {
//     batch.wait_on(trainer);                  // orders the stream; this thread does not wait
//     step<<<..., trainer.handle()>>>(batch.tensor().data<float>(), ...);
//   }
//
// Copies share the tensors. When the last copy is destroyed, the memory returns to its pool behind
// the work that the streams of wait_on() have by then. These streams must exist until then, and
// the copies must not be destroyed in a callback of CUDA.
//
// Thread: any, several at a time.
//
// Not yet run on a GPU: tested over a driver that a test replaces.
class device_batch {
 public:
  // For stages that make such batches. `blocks`: the memory of the tensors and labels. `ready`: an
  // event behind the work that writes them. Throws error(invalid_argument)
  // - if there is no tensor, or two have the same name,
  // - if a tensor has no part for each sample in its first dimension,
  // - if `labels` is not i64 [samples.size()] in one piece,
  // - if a tensor, the labels or a block is not in memory of the event's device. Managed memory is
  //   that of every device.
  device_batch(std::vector<named_tensor> tensors, std::vector<sample> samples,
               std::optional<lade::tensor> labels, std::vector<device_block> blocks, event ready);

  std::size_t size() const noexcept;

  // The first tensor, and all of them.
  const lade::tensor& tensor() const noexcept;
  std::span<const named_tensor> tensors() const noexcept;

  // The tensor of that name. `find` returns null if there is none; `[]` throws
  // error(invalid_argument) that names the tensors that exist.
  const lade::tensor* find(std::string_view name) const noexcept;
  const lade::tensor& operator[](std::string_view name) const;

  // The labels as i64 [size()], sample::no_label (-1) for a sample without one. Throws
  // error(invalid_argument) if no sample has a label.
  bool has_labels() const noexcept;
  const lade::tensor& labels() const;

  // The samples, in host memory: keys, labels, and fields that are not tensors of the batch.
  const std::vector<sample>& samples() const noexcept;

  device on() const noexcept;

  // `co_await batch.ready()` resumes when the tensors have been written. wait_on() is cheaper, and
  // the only way with to_device_options::into, whose tensors are written by wait_on() itself.
  const event& ready() const noexcept;

  // Work that is queued on the stream from now on finds the tensors written. Throws error. With
  // stream::per_thread_default, call record_on() behind the work, on the same thread.
  //
  // With to_device_options::into, the first call copies the batch to the fixed tensors, behind the
  // work of all streams that use the batch in them; later calls copy nothing. The batch is valid
  // until another one is copied there. From then on, the call throws error(invalid_argument).
  void wait_on(const stream& user) const;

  // Work that is queued on the stream from now on does not use the tensors. Without this call the
  // memory returns behind all work that is queued when the last copy is destroyed. Also for a
  // stream of which wait_on() was not called. Throws error.
  void record_on(const stream& user) const;

  // The size of the tensors and of the samples' fields in memory.
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
