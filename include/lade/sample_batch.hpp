// What a trainer gets: tensors with names, made of many samples.

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

// A tensor of a batch, under the name of the field that it is made of.
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

// Samples as tensors, which have a part for each sample in their first dimension:
//
//   batch.tensor()      the first: u8 [256, 224, 224, 3]
//   batch["mask"]       the one that is made of the field "mask"
//   batch.labels()      i64 [256]
//
// Copies share the tensors.
class sample_batch {
 public:
  // One tensor, which is called "data".
  sample_batch(lade::tensor data, std::vector<sample> samples);

  // Throws error(invalid_argument) if there is no tensor, or two have the same name.
  sample_batch(std::vector<named_tensor> tensors, std::vector<sample> samples);

  std::size_t size() const noexcept { return samples_.size(); }

  // The first tensor, and all of them.
  const lade::tensor& tensor() const noexcept { return tensors_.front().tensor(); }
  std::span<const named_tensor> tensors() const noexcept { return tensors_; }

  // The tensor of that name. `find` returns null if there is none; `[]` throws
  // error(invalid_argument) that names those there are.
  const lade::tensor* find(std::string_view name) const noexcept;
  const lade::tensor& operator[](std::string_view name) const;

  // The samples' keys and labels, and their fields, but for bytes and for what has become tensors.
  // `std::move(batch).samples()` takes them out.
  const std::vector<sample>& samples() const& noexcept { return samples_; }
  std::vector<sample> samples() && noexcept { return std::move(samples_); }

  // The labels as i64 [size()], in fresh memory.
  lade::tensor labels() const;

  // The size of the tensors and of the samples' fields in memory.
  std::size_t content_bytes() const;

 private:
  std::vector<named_tensor> tensors_;  // at least one
  std::vector<sample> samples_;
};

}  // namespace lade
