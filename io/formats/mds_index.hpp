// Parses the index of a dataset in MDS (MosaicML Streaming): its shards and their columns.

#pragma once

#include <lade/tensor.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lade::io {

// A column and how its values are encoded.
struct mds_column {
  enum class kind : std::uint8_t { bytes, text, number, text_integer, text_number, array };

  std::string name;
  kind type = kind::bytes;
  std::optional<std::size_t> size;      // size of each value in bytes, if all are equal
  std::optional<element_type> element;  // of numbers and arrays; may be stored in the array
  std::optional<std::vector<std::int64_t>> shape;  // of arrays; may be stored in the array
};

using mds_columns = std::shared_ptr<const std::vector<mds_column>>;

struct mds_shard {
  std::string file;         // relative to the directory; the compressed file if there is one
  std::uint64_t bytes = 0;  // uncompressed
  bool compressed = false;
  std::uint64_t samples = 0;
  std::uint64_t end = 0;  // number of samples in this shard and those before it
  mds_columns columns;
};

// Parses an index.json. Throws error naming `name` and the shard or the column: see open_mds.
std::vector<mds_shard> parse_mds_index(std::string_view text, std::string_view name);

// Parses an encoding, such as "int" or "ndarray:float32:2,3". Throws error(unsupported).
mds_column parse_mds_column(std::string name, std::string_view encoding);

}  // namespace lade::io
