// Elastic determinism: global batches that do not depend on the number of ranks.

#pragma once

#include <lade/description.hpp>
#include <lade/shard.hpp>

#include <cstddef>

namespace lade {

// How many items a rank takes in a step, so that all ranks together take `global_batch`. Throws
// error(invalid_argument) if the number of ranks does not divide it.
std::size_t batch_size_of_rank(std::size_t global_batch, const shard_options& rank);

// For the pipeline of a rank, which ends in batches: throws error(invalid_argument) that names the
// first stage for which global batches would depend on the number of ranks.
//
//   require_elastic(batches.describe());
//
// If it returns, and no item fails, the ranks' batches of a step together are the same items for
// every number of ranks, in every step, also in a run that resumes from merged states with another
// number of ranks. The j-th item of rank r of w is the (j * w + r)-th item of the global batch. In
// the last global batch of an epoch, remainder::pad and wrap may repeat items in addition.
//
// It cannot know what functions do, nor, of a single rank, what the shard of several would be.
void require_elastic(const pipeline_description& pipeline);

}  // namespace lade
