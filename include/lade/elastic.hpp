// elastic: global batches that do not depend on the number of ranks (elastic determinism).

#pragma once

#include <lade/description.hpp>
#include <lade/shard.hpp>

#include <cstddef>

namespace lade {

// The number of items that a rank takes per step, so that all ranks together take `global_batch`.
// Throws error(invalid_argument) if the number of ranks does not divide `global_batch`, or if
// `rank` is not less than `world`.
std::size_t batch_size_of_rank(std::size_t global_batch, const shard_options& rank);

// Checks the pipeline of a rank, which must make batches. Throws error(invalid_argument), with the
// reason and the first stage for which global batches would depend on the number of ranks.
//
//   require_elastic(batches.describe());
//
// If it returns and no item fails, the batches of all ranks in a step together have the same items
// for every number of ranks. This holds in every step, also in a run that resumes from merged
// states with another number of ranks. Item j of rank r of w is item j * w + r of the global batch.
// In the last global batch of an epoch, remainder::pad and wrap may add repeated items.
//
// Limits: it does not inspect the functions of stages. For a single rank, it cannot check how the
// pipeline would shard among several ranks.
void require_elastic(const pipeline_description& pipeline);

}  // namespace lade
