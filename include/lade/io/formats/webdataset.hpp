// Samples in tar archives, as in WebDataset: consecutive files whose names differ only in their
// extensions are the fields of one sample.

#pragma once

#include <lade/async_generator.hpp>
#include <lade/io/formats/decompress.hpp>
#include <lade/io/formats/tar.hpp>
#include <lade/sample.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

namespace lade {

namespace io {

// Throws error(invalid_data) naming the sample for a sample without any of the wanted fields,
// without a field for its data, or without the field of its label.
struct read_tar_options {
  // The fields to keep, separated by commas: "jpg,cls". If empty, all fields.
  std::string_view fields = {};

  // The field whose bytes become sample.data(), for decoders. Of several, "jpg,png", the first that
  // a sample has. It also stays a field.
  std::string_view data = {};

  // The field whose text is the label of the sample, an integer from 0 on: "cls".
  std::string_view label = {};

  // Bytes of a read of the archive. A sample keeps the buffers that contain it alive. So with small
  // samples in a large shuffle window, a small value saves memory.
  std::size_t chunk_bytes = std::size_t{1} << 20;

  tar_options tar = {};
  decompress_options decompress = {};
};

}  // namespace io

namespace detail {

struct read_tar_settings;

// The type of io::read_tar.
class read_tar {
 public:
  constexpr read_tar() noexcept = default;

  async_generator<sample> operator()(sample shard) const;

  // Throws error(invalid_argument) for options out of range.
  read_tar with(const io::read_tar_options& options) const;

 private:
  explicit read_tar(std::shared_ptr<const read_tar_settings> settings) noexcept
      : settings_(std::move(settings)) {}

  std::shared_ptr<const read_tar_settings> settings_;  // null for default options
};

}  // namespace detail

namespace io {

// Yields the samples in the archive that the key of a sample names. The archive may be compressed
// with gzip or Zstandard:
//
//   lade::from(lade::io::shards("train-{000000..001023}.tar")) | lade::shuffle({.seed = 7}) |
//       lade::shard(lade::rank_from_environment()) |
//       lade::flat_map(lade::io::read_tar, {.concurrency = 4}) | lade::shuffle({.window = 4096})
//
// Behind flat_map, a window shuffle or a batch has no checkpoint (see
// docs/guides/checkpoint-and-resume.md). io::from_shards and io::index_shards are sources with
// checkpoints.
//
//   lade::flat_map(lade::io::read_tar.with({.data = "jpg,png", .label = "cls"}))
//
// The key of a sample is "SHARD/KEY". KEY is the path of its members up to the first dot in the
// last component. The rest, in lower case, is the name of the field: "img/01.seg.PNG" is the field
// "seg.png" of "img/01". Fields are bytes, views of the archive's buffers (see tar_members).
// Consecutive members with the same key are one sample; if a key occurs again later, it is another
// sample.
//
// Skipped members:
// - without an extension
// - whose last component begins with a dot
// - whose first directory or name is like "__this__"
//
// If damage removes the first member of a sample, the sample has only the other fields. `on_error`
// of flat_map decides about damaged shards: with `skip`, the run continues with the next shard, and
// delivers the samples before the damage. options.tar.on_damage applies first.
//
// Throws error as tar_members and decompress do, naming the shard. Throws error(invalid_data) for a
// sample in which a field occurs twice, or whose label is not an integer. Throws
// error(limit_exceeded) for a sample of more than 4096 fields.
inline constinit const detail::read_tar read_tar;

}  // namespace io
}  // namespace lade
