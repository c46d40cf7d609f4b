// Plans the copy of a batch to a GPU.

#pragma once

#include <lade/buffer.hpp>
#include <lade/sample_batch.hpp>
#include <lade/tensor.hpp>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace lade::cuda {

// The layout of a batch in one block of GPU memory, and of the staged parts in a block of pinned
// memory. Labels are staged, and tensors that are pageable or not contiguous.
class copy_plan {
 public:
  static constexpr std::string_view labels = "labels";

  struct part {
    std::string name;
    lade::tensor from;  // not set for labels
    tensor_spec spec;
    bool is_labels = false;
    bool is_staged = false;
    std::size_t offset = 0;         // in the block of the GPU
    std::size_t staged_offset = 0;  // in the staging memory
  };

  // Throws error(invalid_argument) for a tensor that the CPU cannot read.
  explicit copy_plan(const sample_batch& batch);

  // The tensors in their order, followed by the labels if there are any.
  const std::vector<part>& parts() const noexcept { return parts_; }
  std::size_t bytes() const noexcept { return bytes_; }  // of the block on the GPU
  std::size_t staging_bytes() const noexcept { return staging_bytes_; }
  std::size_t staged_bytes() const noexcept { return staged_bytes_; }  // of tensors

  // Copies the staged parts to `staging`, of staging_bytes().
  void stage(const sample_batch& batch, std::byte* staging) const;

  // The source address of a part's copy.
  const std::byte* source(const part& item, const buffer& staging) const;

  // The host memory that the copies read.
  std::vector<buffer> sources(const buffer& staging) const;

 private:
  void add(part added);

  std::vector<part> parts_;
  std::size_t bytes_ = 0;
  std::size_t staging_bytes_ = 0;
  std::size_t staged_bytes_ = 0;
};

}  // namespace lade::cuda
