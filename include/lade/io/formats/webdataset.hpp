// Samples in tar archives, as WebDataset arranges them: files that stand together and whose names
// differ in their extensions only are the fields of one sample.

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

// A sample that has none of the wanted fields, none of those for its data, or not that of its label
// is error(invalid_data), which names it.
struct read_tar_options {
  // The fields to keep, separated by commas: "jpg,cls". All of them if empty.
  std::string_view fields = {};

  // The field whose bytes become sample.data(), for decoders: of several, "jpg,png", the first that
  // a sample has. It stays a field too.
  std::string_view data = {};

  // The field whose text is the sample's label, an integer from 0 on: "cls".
  std::string_view label = {};

  // How much of the archive is read at a time. A sample keeps the buffers alive that it is in, so
  // small samples in a large shuffle window take less memory with a small value.
  std::size_t chunk_bytes = std::size_t{1} << 20;

  tar_options tar = {};
  decompress_options decompress = {};
};

}  // namespace io

namespace detail {

struct read_tar_settings;

// What io::read_tar is.
class read_tar {
 public:
  constexpr read_tar() noexcept = default;

  async_generator<sample> operator()(sample shard) const;

  // Throws error(invalid_argument) for options that cannot work.
  read_tar with(const io::read_tar_options& options) const;

 private:
  explicit read_tar(std::shared_ptr<const read_tar_settings> settings) noexcept
      : settings_(std::move(settings)) {}

  std::shared_ptr<const read_tar_settings> settings_;  // null for the usual ones
};

}  // namespace detail

namespace io {

// The samples in the archive that is the key of a sample, which may be compressed with gzip or
// Zstandard:
//
//   lade::from(lade::io::shards("train-{000000..001023}.tar")) | lade::shuffle({.seed = 7}) |
//       lade::shard(lade::rank_from_environment()) |
//       lade::flat_map(lade::io::read_tar, {.concurrency = 4}) | lade::shuffle({.window = 4096})
//
// Behind flat_map, a window shuffle or a batch has no state to go on from (see
// docs/guides/checkpoint-and-resume.md). io::from_shards and io::index_shards are sources that have
// one.
//
//   lade::flat_map(lade::io::read_tar.with({.data = "jpg,png", .label = "cls"}))
//
// The key of a sample is "SHARD/KEY", where KEY is the path of its members up to the first dot in
// the last component. The rest, in lower case, names the field: "img/01.seg.PNG" is the field
// "seg.png" of "img/01". Fields are bytes: views of what was read (see tar_members). Members that
// follow each other and have one key are one sample; a key that comes again later is another one.
//
// Passed over are members without an extension, those whose last component begins with a dot, and
// those in a first directory, or of a name, like "__this__".
//
// A sample whose first member a damaged archive has lost has the other fields only. A shard that is
// damaged fails as flat_map's `on_error` says: with `skip`, the run goes on at the next shard, and
// the samples before the damage are kept. options.tar.on_damage decides before that.
//
// Throws error as tar_members and decompress do, naming the shard, error(invalid_data) for a sample
// in which a field comes twice, or whose label is no integer, and error(limit_exceeded) for one of
// more than 4096 fields.
inline constinit const detail::read_tar read_tar;

}  // namespace io
}  // namespace lade
