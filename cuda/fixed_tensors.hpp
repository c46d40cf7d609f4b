// The tensors at fixed addresses into which a to_device stage copies its batches.

#pragma once

#include "stream_users.hpp"

#include <lade/sample_batch.hpp>

#include <memory>
#include <mutex>
#include <span>
#include <string>

namespace lade::cuda::detail {

// The contents of the tensors. Shared by the batches of all runs of a stage.
//
//   empty --copy_to--> placed by a batch --copy_to of a later batch--> placed by that batch
//         <--destruction of the batch: records the last points of its users--
struct fixed_tensors {
  std::mutex mutex;              // guards the members below
  const void* placed = nullptr;  // the last batch copied into them; null once it is destroyed
  stream_users users;            // of that batch: the next copy waits for their work
};

bool overlap(const tensor& a, const tensor& b);

// Claims the memory of a stage's tensors until the result and its copies are destroyed. Throws
// error(invalid_argument), naming tensors and stages, if another stage has claimed it. Thread-safe.
std::shared_ptr<fixed_tensors> claim_fixed_tensors(std::shared_ptr<fixed_tensors> content,
                                                   const std::string& stage,
                                                   std::span<const named_tensor> tensors);

}  // namespace lade::cuda::detail
