// Copies the labels of samples to a GPU.

#pragma once

#include <lade/cuda/memory.hpp>
#include <lade/cuda/stream.hpp>
#include <lade/sample.hpp>
#include <lade/task.hpp>
#include <lade/tensor.hpp>

#include <cstddef>
#include <optional>
#include <vector>

namespace lade::cuda {

// Whether any sample has a label.
bool have_labels(const std::vector<sample>& samples) noexcept;

// Writes the labels as i64 to an address of any alignment.
void write_labels(const std::vector<sample>& samples, std::byte* to) noexcept;

// Copies the labels, i64 [samples], to memory of the stream's device, which it appends to `blocks`.
// The copy is complete when the task ends. Returns nothing if no sample has a label. The arguments
// must outlive the await. Throws error; the memory may then be destroyed.
task<std::optional<tensor>> copy_labels(const std::vector<sample>& samples, device_resource& memory,
                                        const stream& on, std::vector<device_block>& blocks);

}  // namespace lade::cuda
