// Datasets of MosaicML Streaming (https://docs.mosaicml.com/projects/streaming), format MDS: a
// folder with index.json and shards. A shard has samples, and a sample has columns.

#pragma once

#include <lade/async_generator.hpp>
#include <lade/sample.hpp>
#include <lade/task.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace lade::io {

struct mds_options {
  // Maximum decompressed size of a shard in bytes. Larger shards are refused with
  // errc::limit_exceeded. The default is the largest possible size, because MDS counts the bytes
  // with 32 bits.
  std::uint64_t max_bytes = std::uint64_t{1} << 32;
};

// An open dataset. Samples have a field for each column:
//
//   bytes, jpeg, png                          bytes
//   str, json, str_decimal                    text
//   int, int8 to uint64, str_int              an integer
//   float16, float32, float64, str_float      a number
//   ndarray, also with a type and a shape     a tensor
//
// The key of a sample is the path of its shard and its number in the shard:
// "train/shard.00000.mds/17". Bytes and tensors are views of the sample's buffer; a tensor that is
// not aligned in the buffer is copied.
//
// Access by index, with exact shuffle, shard and checkpoints at no cost:
//
//   auto data = co_await lade::io::open_mds("train");
//   lade::from_index(data.size(), std::identity(), {.identity = data.identity()})
//       | lade::shuffle({.seed = 1}) | lade::map(data)
//
// Access by shard, which reads each shard once and is the only way for compressed shards:
//
//   lade::from(data.shards()) | lade::shuffle() | lade::flat_map(lade::io::read_mds_shard(data))
//
// Copies share the index. Any thread may use it.
class mds {
 public:
  // The number of samples in all shards.
  std::uint64_t size() const noexcept;

  // Returns the sample `index` of the dataset. Opens its shard, reads twice, and closes the shard.
  // Throws error(unsupported) if the shard is compressed, and error(invalid_argument) for an index
  // out of range. Throws error(invalid_data) naming the shard, the sample and the column if the
  // shard contradicts the index or its columns.
  task<sample> operator()(std::uint64_t index) const;

  // Returns a sample for each shard: its path as the key, its number in the field "shard", no data.
  std::vector<sample> shards() const;

  // Returns the identity of the dataset, which checkpoints compare. It depends on the file names,
  // sample counts and sizes of the shards.
  std::string identity() const;

 private:
  friend class read_mds_shard;
  friend task<mds> open_mds(std::string directory);
  struct content;

  explicit mds(std::shared_ptr<const content> opened) : content_(std::move(opened)) {}

  static task<sample> read(std::shared_ptr<const content> from, std::uint64_t index);
  static async_generator<sample> read_shard(std::shared_ptr<const content> from, sample file,
                                            mds_options options);

  std::shared_ptr<const content> content_;
};

// Reads directory/index.json. Throws error naming it if it is not an index of MDS. That includes an
// index with a shard of 4 GiB, whose end offsets of 32 bits cannot reach. Throws error(unsupported)
// naming the shard or the column. Reasons: another format, a compression other than zstd and gz, or
// an encoding not listed above (such as pkl).
task<mds> open_mds(std::string directory);

// A function for flat_map: yields the samples of a shard in order. A compressed shard is
// decompressed, up to mds_options::max_bytes. Checksums of gzip are verified, and those of
// Zstandard if present. Hashes of shards in the index (sha1, xxh64 and others) are not verified,
// because this module has no library that computes them. So damage within a value of an
// uncompressed shard is not detected.
class read_mds_shard {
 public:
  explicit read_mds_shard(mds dataset, mds_options options = {})
      : dataset_(std::move(dataset)), options_(options) {}

  // Throws error(invalid_argument) for a sample that is not in dataset.shards(),
  // error(limit_exceeded) for a shard that exceeds max_bytes, and otherwise as `mds` does.
  async_generator<sample> operator()(sample shard) const;

 private:
  mds dataset_;
  mds_options options_;
};

}  // namespace lade::io
