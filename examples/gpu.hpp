// Batches by way of a GPU: what --device does.

#pragma once

#include <lade/pipeline.hpp>
#include <lade/sample_batch.hpp>

// The batches, copied to the GPU of that number and from there back, both while others are decoded.
// A trainer would leave out the way back. Throws if the programs were built without lade-cuda; a
// run fails if there is no such GPU.
lade::pipeline<lade::sample_batch> by_gpu(const lade::pipeline<lade::sample_batch>& batches,
                                          int device);
