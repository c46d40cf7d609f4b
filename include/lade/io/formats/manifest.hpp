// Manifests: lists of samples in a file, as CSV (RFC 4180) or as JSON lines. Each says where the
// bytes of a sample are, and what else is known of it.

#pragma once

#include <lade/async_generator.hpp>
#include <lade/sample.hpp>
#include <lade/task.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lade {

namespace detail {
class read_range;
}

namespace io {

enum class manifest_format : std::uint8_t {
  automatic,   // by the end of the file's name: .csv, .jsonl or .ndjson
  csv,         // the first line names the columns
  json_lines,  // each line is an object
};

struct manifest_options {
  manifest_format format = manifest_format::automatic;

  // The columns with a meaning, as CSV and JSON lines name them. If `key` is empty, it is "path",
  // "url" or "key", of which there must be one. Any of the others may be absent, and is an ordinary
  // field if its name is empty here.
  std::string_view key = {};
  std::string_view label = "label";
  std::string_view offset = "offset";
  std::string_view length = "length";

  // Put before keys that are neither absolute paths nor URLs. If empty, that is the directory of a
  // manifest behind a URL, and nothing for one that is a file. A manifest is believed, also one
  // from afar: its keys may be any files that the program can read.
  std::string_view root = {};

  // Longer rows are refused with error(limit_exceeded).
  std::size_t max_row_bytes = std::size_t{16} << 20;
};

// The samples that a manifest lists, in its order:
//
//   lade::from(lade::io::manifest("train.csv", {.root = "/data"})) | lade::shuffle({.seed = 1})
//       | lade::map(lade::io::read_range)
//
// Their keys are the paths or URLs, their labels the integers in the column of labels. An offset
// and a length, in bytes, become integer fields "offset" and "length". Each further column becomes
// a field with its name: text from CSV; from JSON lines as read_json_line has it. An empty cell of
// CSV in one of the columns with a meaning, and a null, count as absent.
//
// The manifest may be a URL of a store (see store.hpp): "s3://bucket/train.csv". It is read in
// chunks while its first samples are already used, and its relative names are those of objects
// beside it.
//
// A small value that describes a listing; each call of list, list_all or load_all reads the
// manifest anew; a file with blocking calls, so they belong on the CPU pool or an ordinary thread.
// They throw error that names the manifest and the line for what does not follow the format: a row
// with more or fewer cells than there are columns, a column that occurs twice, a label that is no
// integer.
class manifest {
 public:
  // Throws error(invalid_argument) for a file whose name does not say its format.
  explicit manifest(std::string path, const manifest_options& options = {});

  const std::string& path() const noexcept { return path_; }

  // `list_all` throws error(unsupported) for a URL, which has to be waited for.
  async_generator<sample> list() const;
  std::vector<sample> list_all() const;
  task<std::vector<sample>> load_all() const;

  // What tells a sample from others, for states: its key, of a URL without a signature, offset and
  // length.
  std::string identity_of(const sample& listed) const;

 private:
  class rows;

  static async_generator<sample> list(manifest what);
  static async_generator<sample> list_file(manifest what);
  static async_generator<sample> list_object(manifest what);
  static task<std::vector<sample>> load_all(manifest what);

  std::string path_;
  manifest_format format_;
  std::string key_;
  std::string label_;
  std::string offset_;
  std::string length_;
  std::string root_;
  std::size_t max_row_bytes_;
};

// Writes samples to a manifest of JSON lines: their keys as "path", labels, and fields. So one rank
// lists a data set, and the others read the list (see saved_listing.hpp):
//
//   if (rank == 0) save_manifest("train.jsonl", io::files("/data/train").list_all());
//
// The file appears at once, as a whole: it is written beside its path and renamed. Blocks. Throws
// error(invalid_argument) for what such a file cannot hold: data, fields of bytes or tensors, names
// and texts that are not UTF-8, fields called "path" or "label", a name that ends unlike .jsonl or
// .ndjson; and error that names the file if it cannot be written.
void save_manifest(const std::string& path, std::span<const sample> samples);

}  // namespace io

// What io::read_range is.
class detail::read_range {
 public:
  static constexpr unsigned default_concurrency = 64;  // as of io::read

  task<sample> operator()(sample from) const;
};

namespace io {

// The sample with the bytes that its fields "offset" and "length" say, of the file that is its key:
// from the beginning if there is no offset, to the end if there is no length. Throws
// error(invalid_data) if they are not all there.
inline constexpr detail::read_range read_range;

}  // namespace io
}  // namespace lade
