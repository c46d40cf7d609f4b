// Sharing tensors with other libraries, without copies, through DLPack.

#pragma once

#include <lade/tensor.hpp>

struct DLManagedTensor;  // of <dlpack/dlpack.h>

namespace lade {

// Exports a tensor for NumPy, PyTorch, JAX and other libraries. The memory is shared. The consumer
// must call the deleter of the result once, on any thread; the memory lives until then.
DLManagedTensor* to_dlpack(tensor shared);

// Imports the memory of another library as a tensor. Destroying the last share of the tensor calls
// the deleter of `foreign`, if there is one, on the thread that does so.
//
// Throws error(unsupported) for a type, device or rank that lade lacks, and error(invalid_argument)
// for an impossible shape or strides. The caller then still owns `foreign`.
tensor from_dlpack(DLManagedTensor* foreign);

}  // namespace lade
