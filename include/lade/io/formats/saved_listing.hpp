// Saved listings: one rank lists a data set, and the other ranks read the list.

#pragma once

#include <lade/async_generator.hpp>
#include <lade/io/directory.hpp>
#include <lade/io/formats/manifest.hpp>
#include <lade/sample.hpp>
#include <lade/task.hpp>

#include <string>
#include <utility>
#include <vector>

namespace lade::io {

// The samples of a listing (files or labelled_files), read from a manifest that save_listing has
// written:
//
//   auto photos = io::labelled_files("s3://bucket/train", "**/*.jpg");
//   if (rank == 0) sync_wait(runtime, io::save_listing(photos, "/shared/train.jsonl"));
//   wait_for_rank_0();
//   auto samples = lade::from(io::saved_listing(photos, "/shared/train.jsonl"));
//
// Listing a bucket takes a request per thousand objects; a manifest is read at once. It contains
// labels, sizes and entity tags. Checkpoints of runs over the listing and over the saved listing
// are interchangeable.
//
// `path`: a file, or a URL of a store. It may change only between runs. save_listing writes files
// only. The functions are those of `manifest` and throw the same errors.
template <class Listing>
class saved_listing {
 public:
  saved_listing(Listing listing, std::string path)
      : listing_(std::move(listing)), saved_(std::move(path)) {}

  async_generator<sample> list() const { return saved_.list(); }
  std::vector<sample> list_all() const { return saved_.list_all(); }
  task<std::vector<sample>> load_all() const { return saved_.load_all(); }

  // As of the listing itself. Throws error(invalid_argument) for a sample that is not in the
  // listing.
  std::string identity_of(const sample& listed) const { return listing_.identity_of(listed); }

 private:
  Listing listing_;
  manifest saved_;
};

// Lists the files and saves the list by save_manifest, so the file appears atomically. Blocks while
// it writes.
template <class Listing>
task<> save_listing(Listing listing, std::string path) {
  auto all = co_await listing.load_all();
  save_manifest(path, all);
}

}  // namespace lade::io
