// Listings of directory trees and of stores, as sources of samples.

#pragma once

#include <lade/async_generator.hpp>
#include <lade/io/glob.hpp>
#include <lade/sample.hpp>
#include <lade/task.hpp>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lade::io {

struct files_options {
  bool ignore_case = false;   // of the pattern: "*.jpg" matches A.JPG
  bool may_be_empty = false;  // whether a listing without a file is allowed

  // Whether checkpoints compare the sizes of files, and not only their paths below the root. Costs
  // a stat() of each file in a directory; a listing of a store has the sizes. Nothing else is
  // compared. A file or object that is replaced by one of equal size is not detected, also if a
  // store returns its entity tag. So a checkpoint is valid for a copy of the data set in another
  // bucket or on a disk, where the tags differ.
  bool compare_sizes = false;

  // Collects errors of directories below `root` that cannot be read, or whose paths are too long,
  // as "list a/b: Permission denied". The listing skips these directories. If null, it throws
  // instead. Must outlive the listings; one listing at a time may use it.
  std::vector<std::string>* unreadable = nullptr;
};

// A listing of the regular files below `root` whose paths relative to `root` match a pattern (see
// glob). The samples have no data; their keys are the paths of the files:
//
//   lade::io::files("train", "**/*.{jpg,jpeg,png}")
//
// If `pattern` is empty, wildcards in `root` are the pattern (see split_pattern), as in
// `files("s3://bucket/train/**/*.jpg")`. A root without wildcards is listed as a whole.
//
// Order: by the bytes of the paths, on every file system. Symbolic links are followed, except to a
// directory that contains the link. A broken link is listed; reading it reports the error. Names
// that begin with a dot are skipped unless the pattern names the dot. Directories that cannot match
// are not opened.
//
// Stores. The root may be a URL of a store that lists objects, "s3://bucket/train" (see store.hpp).
// The order is that of the store. The samples have the fields "size", in bytes, and "etag", if the
// store returns one.
//
// Size. The listing is read incrementally, so pipeline::size() of from(files) is known only during
// a run. from(files.list_all()) reads the listing at once and knows its size.
//
// The object is a small value that describes a listing. Each call of list, list_all or load_all
// lists again. Directories are read by blocking calls, so call these functions on the CPU pool or
// on an ordinary thread. They throw error naming a directory (also `root`) that cannot be read. A
// listing without a file ends with error(invalid_argument) naming root and pattern, unless
// `may_be_empty` is set. A wrong pattern is more likely than an empty data set.
class files {
 public:
  explicit files(std::string root, std::string_view pattern = {}, files_options options = {});

  const std::string& root() const noexcept { return root_; }

  // Yields the files one by one. Reads a directory when the directory before is exhausted. Of a
  // store, reads the listing page by page.
  async_generator<sample> list() const;

  // Return all files. `list_all` cannot wait for a store: throws error(unsupported) if the root is
  // a URL. `load_all` lists both.
  std::vector<sample> list_all() const;
  task<std::vector<sample>> load_all() const;

  // Returns the identity of a listed file, which checkpoints compare. Throws
  // error(invalid_argument) for a sample whose key is not below the root or does not match the
  // pattern.
  std::string identity_of(const sample& file) const;

 private:
  friend class labelled_files;
  class walk;

  files(rooted_pattern where, const files_options& options);

  static async_generator<sample> list(files what, bool labelled);
  static async_generator<sample> list_directory(files what, bool labelled);
  static async_generator<sample> list_store(files what, bool labelled);
  static async_generator<sample> list_objects(files what, std::vector<std::string>* classes);
  static task<std::vector<sample>> load_all(files what, bool labelled);
  static task<std::vector<std::string>> load_class_names(files what);
  std::vector<sample> list_all(bool labelled) const;
  void require_directory() const;
  std::vector<std::string> directories() const;  // names of the directories in the root

  std::string root_;
  std::string pattern_text_;
  glob pattern_;
  bool may_be_empty_;
  bool compare_sizes_;
  std::vector<std::string>* unreadable_;
};

// The same for data sets with one directory per class. The label of a file is the index of its
// directory among the sorted names of all directories in `root`. Directories without a matching
// file count; directories whose names begin with a dot do not. Files directly in `root` have no
// label. A store has no empty directories.
class labelled_files {
 public:
  explicit labelled_files(std::string root, std::string_view pattern = {},
                          files_options options = {})
      : files_(std::move(root), pattern, options) {}

  // Return the sorted names of the directories in `root`; a label is an index into them.
  // `class_names` throws as list_all of `files` does.
  std::vector<std::string> class_names() const;
  task<std::vector<std::string>> load_class_names() const;

  // As of `files`. Of a store, `list` reads the whole listing before the first sample, because
  // labels require the names of all directories.
  async_generator<sample> list() const;
  std::vector<sample> list_all() const;
  task<std::vector<sample>> load_all() const;

  // As of `files`, with the label: a new directory may change the labels of all files.
  std::string identity_of(const sample& file) const;

 private:
  files files_;
};

}  // namespace lade::io
