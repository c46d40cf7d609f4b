// Tensors shared with other libraries, without copies, through DLPack.

#pragma once

#include <lade/tensor.hpp>

struct DLManagedTensor;  // of <dlpack/dlpack.h>

namespace lade {

// The tensor as NumPy, PyTorch, JAX and others take it. The memory is shared: it lives until the
// consumer has called the deleter of the result, which it must do once, on any thread.
DLManagedTensor* to_dlpack(tensor shared);

// A tensor over the memory of another library. Calls the deleter of `foreign`, if it has one,
// when the last share of the tensor dies, on whichever thread that is. Throws error(unsupported)
// for a type, device or rank that lade does not have, and error(invalid_argument) for a shape or
// strides that cannot be; `foreign` is still the caller's then.
tensor from_dlpack(DLManagedTensor* foreign);

}  // namespace lade
