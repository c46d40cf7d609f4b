// Named tensors made of many samples, the input of a trainer.

#pragma once

#include <lade/sample.hpp>
#include <lade/tensor.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lade {

// A tensor of a batch, named like the field that it contains.
class named_tensor {
 public:
  named_tensor(std::string name, lade::tensor tensor)
      : name_(std::move(name)), tensor_(std::move(tensor)) {}

  const std::string& name() const noexcept { return name_; }
  const lade::tensor& tensor() const noexcept { return tensor_; }

 private:
  std::string name_;
  lade::tensor tensor_;
};

// Samples as tensors. The first dimension of each tensor is the sample:
//
//   batch.tensor()      the first: u8 [256, 224, 224, 3]
//   batch["mask"]       the tensor of the field "mask"
//   batch.labels()      i64 [256]
//
// Copies share the tensors.
class sample_batch {
 public:
  // A batch of one tensor named "data".
  sample_batch(lade::tensor data, std::vector<sample> samples);

  // Throws error(invalid_argument) if there is no tensor or two have the same name.
  sample_batch(std::vector<named_tensor> tensors, std::vector<sample> samples);

  std::size_t size() const noexcept { return samples_.size(); }

  // The first tensor; all tensors.
  const lade::tensor& tensor() const noexcept { return tensors_.front().tensor(); }
  std::span<const named_tensor> tensors() const noexcept { return tensors_; }

  // Returns the tensor of that name. If there is none, `find` returns null, and `[]` throws
  // error(invalid_argument) naming the existing tensors.
  const lade::tensor* find(std::string_view name) const noexcept;
  const lade::tensor& operator[](std::string_view name) const;

  // The samples with their keys, labels and fields, but without their bytes and without fields that
  // became tensors. `std::move(batch).samples()` moves them out.
  const std::vector<sample>& samples() const& noexcept { return samples_; }
  std::vector<sample> samples() && noexcept { return std::move(samples_); }

  // Copies the labels into a new i64 tensor [size()].
  lade::tensor labels() const;

  // The size of the tensors and of the samples' contents in memory, in bytes.
  std::size_t content_bytes() const;

 private:
  std::vector<named_tensor> tensors_;  // at least one
  std::vector<sample> samples_;
};

}  // namespace lade
