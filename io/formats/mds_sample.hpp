// The bytes of one sample in MDS.

#pragma once

#include "mds_index.hpp"

#include <lade/buffer.hpp>
#include <lade/field.hpp>

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

namespace lade::io {

// A value of a sample: its column, its bytes, and of an array what it holds.
struct mds_value {
  const mds_column* column;
  std::span<const std::byte> bytes;
  tensor_spec array = {};
};

// The values of a sample. Throws error(invalid_data) that names `name` and the column if the bytes
// are not what the columns say.
std::vector<mds_value> split_mds_sample(std::span<const std::byte> bytes,
                                        const std::vector<mds_column>& columns,
                                        std::string_view name);

// How many bytes of memory arrays take that are not aligned.
std::size_t unaligned_bytes(const std::vector<mds_value>& values) noexcept;

// The values as fields. They share `bytes`, of which they are views, and arrays that are not
// aligned `copies`, which has as many bytes as above.
std::vector<field> mds_fields(const std::vector<mds_value>& values, const buffer& bytes,
                              const buffer& copies, std::string_view name);

}  // namespace lade::io
