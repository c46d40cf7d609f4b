// The files of a directory tree, found while the first of them are already being read.

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
  bool may_be_empty = false;  // a listing without a file is no error

  // States tell files apart by their sizes too, not only by their paths below the root. Asks the
  // file system for each file when it is listed for a run; a listing of a store has the sizes.
  // Nothing else is compared: a file or object that is replaced by another one of equal size is
  // not noticed, also where a store says its entity tag. Copies of a data set, in another bucket
  // or on a disk, have other tags, and the same states.
  bool compare_sizes = false;

  // Where to add what is wrong with directories below `root` that cannot be read, or whose paths
  // are too long, as "list a/b: Permission denied". A listing leaves them out then; if null, it
  // throws. Must outlive the listings, of which one at a time may run.
  std::vector<std::string>* unreadable = nullptr;
};

// The regular files below `root` whose paths relative to it match a pattern (see glob), as samples
// without data whose keys are their paths:
//
//   lade::io::files("train", "**/*.{jpg,jpeg,png}")
//
// Without a pattern, a root with wildcards is split (see split_pattern), and one without is listed
// as a whole: `files("s3://bucket/train/**/*.jpg")`.
//
// They come in the order of the bytes of their paths, whatever the file system. Symbolic links
// are followed, except back to a directory that they are in; one that leads nowhere is listed, so
// that reading it says so. Names that begin with a dot are skipped unless the pattern asks for
// them. Directories that cannot match are not opened.
//
// The root may be a URL of a store that lists objects, "s3://bucket/train" (see store.hpp), in
// whose order they come. The samples have fields then: "size" in bytes, and "etag" if the store
// says one.
//
// pipeline::size() of from(files) is known only to a run: the listing is read as far as it is
// needed. from(files.list_all()) reads it at once, and knows its size.
//
// A small value that describes a listing; each call of list or list_all lists anew. Both read
// directories with blocking calls, so they belong on the CPU pool or an ordinary thread. Both
// throw error, naming the directory, when one (also `root`) cannot be read, and
// error(invalid_argument), naming root and pattern, at the end of a listing without a file: a
// pattern is more often wrong than a data set empty. `may_be_empty` allows it.
class files {
 public:
  explicit files(std::string root, std::string_view pattern = {}, files_options options = {});

  const std::string& root() const noexcept { return root_; }

  // One after the other. Reads a directory when the one before is exhausted; of a store, a page of
  // its listing.
  async_generator<sample> list() const;

  // All of them. `list_all` throws error(unsupported) for a root that is a URL, which has to be
  // waited for.
  std::vector<sample> list_all() const;
  task<std::vector<sample>> load_all() const;

  // What tells a listed file from others, for states. Throws error(invalid_argument) for a sample
  // whose key is not below the root or does not match the pattern.
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
  std::vector<std::string> directories() const;  // in the root

  std::string root_;
  std::string pattern_text_;
  glob pattern_;
  bool may_be_empty_;
  bool compare_sizes_;
  std::vector<std::string>* unreadable_;
};

// The same, for data sets with one directory for each class: the label of a sample is the index
// of the directory in `root` that it is in, among the sorted names of these directories, also those
// without a file that matches; those that begin with a dot do not count. A store has no empty
// directories. Files beside the directories have no label.
class labelled_files {
 public:
  explicit labelled_files(std::string root, std::string_view pattern = {},
                          files_options options = {})
      : files_(std::move(root), pattern, options) {}

  // The names of the directories in `root`, sorted: what labels mean. `class_names` throws as
  // list_all of `files` does.
  std::vector<std::string> class_names() const;
  task<std::vector<std::string>> load_class_names() const;

  // Of a store, `list` lists all objects before the first, since all directories must be known.
  async_generator<sample> list() const;
  std::vector<sample> list_all() const;
  task<std::vector<sample>> load_all() const;

  // As of `files`, and the label: a new directory may change the labels of all files.
  std::string identity_of(const sample& file) const;

 private:
  files files_;
};

}  // namespace lade::io
