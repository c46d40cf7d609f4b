// Splits the bytes of one sample in MDS into values.

#pragma once

#include "mds_index.hpp"

#include <lade/buffer.hpp>
#include <lade/field.hpp>

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

namespace lade::io {

// A value of a sample: its column, its bytes and, for an array, its spec.
struct mds_value {
  const mds_column* column;
  std::span<const std::byte> bytes;
  tensor_spec array = {};
};

// Splits a sample into its values. Throws error(invalid_data) naming `name` and the column if the
// bytes do not match the columns.
std::vector<mds_value> split_mds_sample(std::span<const std::byte> bytes,
                                        const std::vector<mds_column>& columns,
                                        std::string_view name);

// The memory for copies of arrays that are not aligned.
std::size_t unaligned_bytes(const std::vector<mds_value>& values) noexcept;

// Returns the values as fields. They are views of `bytes`; arrays that are not aligned are copied
// to `copies`, of unaligned_bytes().
std::vector<field> mds_fields(const std::vector<mds_value>& values, const buffer& bytes,
                              const buffer& copies, std::string_view name);

}  // namespace lade::io
