// Tensors of fixed addresses, to which a to_device stage copies its batches.

#pragma once

#include "stream_users.hpp"

#include <mutex>

namespace lade::cuda::detail {

// What is in them. Shared by the batches of all runs of a stage.
struct fixed_tensors {
  std::mutex mutex;              // guards all that follows
  const void* placed = nullptr;  // the batch that was copied to them last; null if it is destroyed
  stream_users users;            // of that batch: the next one is copied behind their work
};

}  // namespace lade::cuda::detail
