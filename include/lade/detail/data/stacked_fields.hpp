// Stacks fields of samples into the tensors of a batch.

#pragma once

#include <lade/context.hpp>
#include <lade/sample.hpp>
#include <lade/tensor.hpp>

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lade::detail {

// The names in a comma-separated list, an option of a stage. Throws error(invalid_argument) naming
// the stage if a name occurs twice.
std::vector<std::string> field_names(std::string_view list, const std::string& stage);

// The type and shape of a field in a batch: i64 or f64 for a number, those of a tensor. Nothing for
// bytes, text, and tensors of the maximum rank.
std::optional<tensor_spec> stacked_spec(const field& from);

// Returns a field. Throws error(invalid_data) naming the sample if it lacks the field, or if the
// field has no stacked_spec.
const field& stackable_field(const sample& from, const std::string& name);

// Copies a field into `slot`, its part of a tensor. Throws as stackable_field does, and if the
// field has another type or shape than the slot, or is not in host memory.
void write_field(const sample& from, const std::string& name, const tensor& slot);

// Stacks a field of all samples into one tensor. Requires at least one sample. `execution`: the
// context that allocates. Throws as write_field does.
tensor stack_field(std::span<const sample> samples, const std::string& name,
                   const context& execution);

// The sample without its data, its fields of bytes, and the fields `stacked`.
sample without_contents(sample from, std::span<const std::string> stacked);

}  // namespace lade::detail
