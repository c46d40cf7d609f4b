// Tensors of fixed addresses, to which a to_device stage copies its batches.

#pragma once

#include "stream_users.hpp"

#include <lade/sample_batch.hpp>

#include <memory>
#include <mutex>
#include <span>
#include <string>

namespace lade::cuda::detail {

// What is in them. Shared by the batches of all runs of a stage.
struct fixed_tensors {
  std::mutex mutex;              // guards all that follows
  const void* placed = nullptr;  // the batch that was copied to them last; null if it is destroyed
  stream_users users;            // of that batch: the next one is copied behind their work
};

bool overlap(const tensor& a, const tensor& b);

// What is in the tensors of a stage, and a claim on their memory: as long as what is returned or a
// copy of it lives, other stages cannot have it. Throws error(invalid_argument) that names tensors
// and stages, if another one has it. Any thread.
std::shared_ptr<fixed_tensors> claim_fixed_tensors(std::shared_ptr<fixed_tensors> content,
                                                   const std::string& stage,
                                                   std::span<const named_tensor> tensors);

}  // namespace lade::cuda::detail
