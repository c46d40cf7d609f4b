// Datasets of MosaicML Streaming (https://docs.mosaicml.com/projects/streaming), format MDS: a
// folder with index.json and shards of samples with columns.

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
  // The most bytes of a shard, decompressed. A larger one is refused with errc::limit_exceeded. No
  // shard has more than the default: it counts them with 32 bits.
  std::uint64_t max_bytes = std::uint64_t{1} << 32;
};

// A dataset whose index has been read. Samples have a field for each column:
//
//   bytes, jpeg, png                          bytes
//   str, json, str_decimal                    text
//   int, int8 to uint64, str_int              an integer
//   float16, float32, float64, str_float      a number
//   ndarray, also with a type and a shape     a tensor
//
// and keys of the shard's path and their number in it, "train/shard.00000.mds/17". Bytes and
// tensors share the sample's buffer; a tensor that is not aligned in it is copied.
//
// By index, so that shuffle, shard and states are exact and free:
//
//   auto data = co_await lade::io::open_mds("train");
//   lade::from_index(data.size(), std::identity(), {.identity = data.identity()})
//       | lade::shuffle({.seed = 1}) | lade::map(data)
//
// Or shard by shard, which reads each once and is the only way for compressed shards:
//
//   lade::from(data.shards()) | lade::shuffle() | lade::flat_map(lade::io::read_mds_shard(data))
//
// Copies share the index. Any thread may use it.
class mds {
 public:
  // The number of samples in all shards.
  std::uint64_t size() const noexcept;

  // Sample `index` of all, with two reads of its shard, which is opened and closed. Throws
  // error(unsupported) if the shard is compressed, error(invalid_argument) for an index that is not
  // there, and error(invalid_data) that names the shard, the sample and the column for a shard that
  // contradicts the index or its columns.
  task<sample> operator()(std::uint64_t index) const;

  // The files of the shards, as samples without data.
  std::vector<sample> shards() const;

  // What tells the dataset from others, for states: the names and sizes of its shards.
  std::string identity() const;

 private:
  friend class read_mds_shard;
  friend task<mds> open_mds(std::string directory);
  struct content;

  explicit mds(std::shared_ptr<const content> opened) : content_(std::move(opened)) {}

  static task<sample> read(std::shared_ptr<const content> from, std::uint64_t index);
  static async_generator<sample> read_shard(std::shared_ptr<const content> from, sample shard,
                                            mds_options options);

  std::shared_ptr<const content> content_;
};

// Reads directory/index.json. Throws error that names it for what is not an index of MDS, such as
// one with a shard of 4 GiB, which offsets of 32 bits do not reach the end of; error(unsupported)
// that names the shard or the column for another format, a compression other than zstd and gz, and
// encodings other than those above (such as pkl).
task<mds> open_mds(std::string directory);

// A function for flat_map: the samples of a shard in order. A compressed shard is decompressed, to
// no more than mds_options::max_bytes; checksums of gzip, and of Zstandard where it has them, are
// compared. The hashes of shards that an index may state (sha1, xxh64 and others) are not: this
// module has no library that computes them. So damage within a value of an uncompressed shard is
// not found.
class read_mds_shard {
 public:
  explicit read_mds_shard(mds dataset, mds_options options = {})
      : dataset_(std::move(dataset)), options_(options) {}

  // Throws error(invalid_argument) for a sample that is none of dataset.shards(),
  // error(limit_exceeded) for a shard of too many bytes, and else as mds does.
  async_generator<sample> operator()(sample shard) const;

 private:
  mds dataset_;
  mds_options options_;
};

}  // namespace lade::io
