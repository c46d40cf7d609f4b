// What decoders that write samples into the slots of batches have in common.

#pragma once

#include <lade/buffer.hpp>
#include <lade/sample.hpp>
#include <lade/tensor.hpp>

#include <string_view>

namespace lade::media {

// The encoded bytes of a sample: those of the field, or its data if `field` is empty. They live as
// long as the sample. Throws error(invalid_argument) if it has none; `doing` is the text of the
// error.
const buffer& encoded_bytes(const sample& in, std::string_view field, std::string_view doing);

// Throws error(invalid_argument) unless `slot` is a contiguous tensor of that spec in memory of the
// host.
void require_slot_of(const tensor_spec& spec, const tensor& slot, std::string_view doing);

}  // namespace lade::media
