// Fields of samples as parts of a batch's tensors.

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

// The words between commas, without the blanks around them: "x, y" has "x" and "y".
std::vector<std::string> divide_list(std::string_view text);

// The same for an option of a stage. Throws error(invalid_argument) that names the stage for a name
// that occurs twice.
std::vector<std::string> field_names(std::string_view list, const std::string& stage);

// What a field is in a tensor: a number i64 or f64, a tensor itself. Nothing for bytes, text, and
// tensors without room for one more dimension.
std::optional<tensor_spec> stacked_spec(const field& from);

// Throws error(invalid_data) that names the sample if it lacks the field, or if that has no
// stacked_spec.
const field& stackable_field(const sample& from, const std::string& name);

// Copies a field into its part of a tensor. Throws as stackable_field does, and for a field of
// another type or shape than the part.
void write_field(const sample& from, const std::string& name, const tensor& slot);

// Copies elements of host memory in the order of their indices, whatever the strides.
void copy_elements(const tensor& from, std::byte* to);

// One tensor of a field of all samples, at least one, in memory of the context. Throws as
// write_field does.
tensor stack_field(std::span<const sample> samples, const std::string& name,
                   const context& execution);

// What of a sample stays when it has become a part of tensors: no bytes, none of these fields.
sample without_contents(sample from, std::span<const std::string> stacked);

}  // namespace lade::detail
