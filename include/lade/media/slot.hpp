// Checks that decoders share which write samples into the slots of batches.

#pragma once

#include <lade/buffer.hpp>
#include <lade/sample.hpp>
#include <lade/tensor.hpp>

#include <string_view>

namespace lade::media {

// Returns the encoded bytes of a sample: those of the field, or its data if `field` is empty. The
// reference is valid as long as the sample. Throws error(invalid_argument) if the sample has none.
// `doing`: the operation that the error names.
const buffer& encoded_bytes(const sample& in, std::string_view field, std::string_view doing);

// Throws error(invalid_argument) unless `slot` is a contiguous tensor with this spec in host
// memory.
void require_slot_of(const tensor_spec& spec, const tensor& slot, std::string_view doing);

}  // namespace lade::media
