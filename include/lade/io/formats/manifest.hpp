// Manifests: lists of samples in a file, as CSV (RFC 4180) or as JSON lines. A row states where the
// bytes of a sample are, and its label and fields.

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

  // Names of the columns with a meaning, in CSV and in JSON lines. An empty `key` stands for
  // "path", "url" or "key": exactly one of these columns must exist. The other columns are
  // optional. If a name is empty here, that column is an ordinary field.
  std::string_view key = {};
  std::string_view label = "label";
  std::string_view offset = "offset";
  std::string_view length = "length";

  // Prefix of keys that are neither absolute paths nor URLs. If empty: the directory of a manifest
  // behind a URL; nothing for a manifest in a file. A manifest is trusted, also one behind a URL:
  // its keys may name any file that the program can read.
  std::string_view root = {};

  // Maximum length of a row in bytes. Longer rows are refused with error(limit_exceeded).
  std::size_t max_row_bytes = std::size_t{16} << 20;
};

// A listing of the samples of a manifest, in its order:
//
//   lade::from(lade::io::manifest("train.csv", {.root = "/data"})) | lade::shuffle({.seed = 1})
//       | lade::map(lade::io::read_range)
//
// Keys are the paths or URLs; labels are the integers in the column of labels. Offset and length,
// in bytes, become the integer fields "offset" and "length". Each further column becomes a field
// with its name: text from CSV; from JSON lines the same as in read_json_line. A null, and an empty
// CSV cell in a column with a meaning, count as absent.
//
// The manifest may be a URL of a store (see store.hpp): "s3://bucket/train.csv". It is read in
// chunks, so the first samples are available before its end is read. Relative names are objects
// beside the manifest.
//
// The object is a small value that describes a listing. Each call of list, list_all or load_all
// reads the manifest again. A file is read by blocking calls, so call these functions on the CPU
// pool or on an ordinary thread. They throw error naming the manifest and the line for a violation
// of the format: a row with more or fewer cells than columns, a column that occurs twice, a label
// that is not an integer.
class manifest {
 public:
  // Throws error(invalid_argument) if the format is automatic and the name has none of its
  // extensions.
  explicit manifest(std::string path, const manifest_options& options = {});

  const std::string& path() const noexcept { return path_; }

  // `list_all` cannot wait for a store: throws error(unsupported) for a URL.
  async_generator<sample> list() const;
  std::vector<sample> list_all() const;
  task<std::vector<sample>> load_all() const;

  // Returns the identity of a sample, which checkpoints compare: its key, offset and length. The
  // key of a URL is without its signature.
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

// Writes samples to a manifest of JSON lines: their keys as "path", their labels, and their fields.
// So one rank lists a data set, and the others read the list (see saved_listing.hpp):
//
//   if (rank == 0) save_manifest("train.jsonl", io::files("/data/train").list_all());
//
// The file appears atomically: it is written under a temporary name and renamed. Blocks. Throws
// error(invalid_argument) for content that a manifest cannot hold: data, fields of bytes or
// tensors, names and texts that are not UTF-8, numbers that are not finite, and fields called
// "path", "url", "key" or "label". Throws it also if `path` ends neither with .jsonl nor with
// .ndjson. Throws error naming the file if it cannot be written.
void save_manifest(const std::string& path, std::span<const sample> samples);

}  // namespace io

// The type of io::read_range.
class detail::read_range {
 public:
  static constexpr unsigned default_concurrency = 64;  // as of io::read

  task<sample> operator()(sample from) const;
};

namespace io {

// Returns the sample with a range of the file that its key names. The fields "offset" and "length"
// state the range in bytes: without an offset from the beginning, without a length to the end.
// Throws error(invalid_data) if the file ends before the range, and error(invalid_argument) if a
// field is not an integer from 0 on.
inline constexpr detail::read_range read_range;

}  // namespace io
}  // namespace lade
