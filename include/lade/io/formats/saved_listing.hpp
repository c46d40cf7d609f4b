// Listings that one rank makes and saves, so that the others need not list.

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

// The samples of a listing, files or labelled_files, as a manifest has them that was saved of it:
//
//   auto photos = io::labelled_files("s3://bucket/train", "**/*.jpg");
//   if (rank == 0) sync_wait(runtime, io::save_listing(photos, "/shared/train.jsonl"));
//   wait_for_rank_0();
//   auto samples = lade::from(io::saved_listing(photos, "/shared/train.jsonl"));
//
// A list of a bucket takes a request for each thousand objects; a manifest is read at once. Labels,
// sizes and entity tags are in it. A state of a run over the listing is one of a run over the saved
// listing, and the other way round.
//
// `path`: a file or a URL of a store, which may change in another run only; save_listing writes
// files alone. The functions are those of a manifest, and throw what these throw.
template <class Listing>
class saved_listing {
 public:
  saved_listing(Listing listing, std::string path)
      : listing_(std::move(listing)), saved_(std::move(path)) {}

  async_generator<sample> list() const { return saved_.list(); }
  std::vector<sample> list_all() const { return saved_.list_all(); }
  task<std::vector<sample>> load_all() const { return saved_.load_all(); }

  // As of the listing itself. Throws error(invalid_argument) for a sample that is none of it.
  std::string identity_of(const sample& listed) const { return listing_.identity_of(listed); }

 private:
  Listing listing_;
  manifest saved_;
};

// Lists, and saves the list as save_manifest does: the file appears as a whole. Blocks while it
// writes.
template <class Listing>
task<> save_listing(Listing listing, std::string path) {
  auto all = co_await listing.load_all();
  save_manifest(path, all);
}

}  // namespace lade::io
