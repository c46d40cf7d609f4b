#include <lade/error.hpp>
#include <lade/io/file.hpp>
#include <lade/io/formats/tar_samples.hpp>
#include <lade/io/ranges.hpp>
#include <lade/scope.hpp>
#include <lade/support/name_digest.hpp>
#include <lade/support/require.hpp>
#include <lade/this_context.hpp>
#include <lade/url.hpp>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <filesystem>
#include <utility>

#include <sys/stat.h>

#include "indexed_shards.hpp"

namespace lade::io {

using detail::indexed_shards;

// Creates one level only: a mistyped path must not create a tree of directories.
static void make_index_directory(const std::string& path) {
  int failure = mkdir(path.c_str(), 0755) == 0 ? 0 : errno;
  std::error_code ignored;
  if (failure == 0 || std::filesystem::is_directory(path, ignored)) return;
  raise(failure == EEXIST ? ENOTDIR : failure, "create the directory of indexes " + path);
}

// Indexes shards until none is left. `next`: the next shard, shared by all such tasks.
static task<> index_some_shards(indexed_shards& shards, std::atomic<std::size_t>& next,
                                const std::string& directory, tar_options options) {
  for (auto i = next++; i < shards.count(); i = next++) {
    auto& name = shards.name(i);
    auto archive = co_await open_reader(name);
    auto identity = co_await detail::identity_of_archive(name, std::string(archive->etag()));
    auto path = identity.empty() ? std::string() : index_path(name, directory);
    auto index = co_await load_or_index_tar(std::move(archive), std::move(identity),
                                            std::move(path), options);
    shards.add(i, index);
  }
}

static task<> index_all_shards(indexed_shards& shards, const std::string& directory,
                               unsigned concurrency, tar_options options) {
  std::atomic<std::size_t> next = 0;
  auto tasks = std::min<std::size_t>(concurrency, shards.count());
  scope children(co_await this_context());
  for (std::size_t i = 0; i < tasks; ++i)
    children.start(index_some_shards(shards, next, directory, options));
  co_await children.join();
}

task<tar_samples> tar_samples::make(std::shared_ptr<indexed_shards> shards, std::string directory,
                                    unsigned concurrency, tar_options options) {
  if (!directory.empty() && scheme_of(directory).empty()) make_index_directory(directory);
  co_await index_all_shards(*shards, directory, concurrency, options);
  shards->number_samples();
  co_return tar_samples(std::move(shards));
}

task<tar_samples> index_shards(shards which, const tar_samples_options& options) {
  lade::support::require_count("index_shards", "concurrency", options.concurrency, {.least = 1});
  auto made = std::make_shared<indexed_shards>(std::move(which), options);
  return tar_samples::make(std::move(made), std::string(options.index_directory),
                           options.concurrency, options.read.tar);
}

std::uint64_t tar_samples::size() const noexcept { return shards_->size(); }

sample tar_samples::at(std::uint64_t i) const { return sample(shards_->key_at(i)); }

std::string tar_samples::identity() const {
  lade::support::name_digest names;
  for (const auto& shard : shards_->all())
    for (const auto& group : shard.groups) names.add(shards_->identity_of(shard, group));
  return names.text();
}

static async_generator<sample> list_groups(std::shared_ptr<const indexed_shards> shards) {
  for (const auto& shard : shards->all())
    for (const auto& group : shard.groups) {
      sample listed(shards->key_of(shard, group));
      co_yield std::move(listed);
    }
}

async_generator<sample> tar_samples::list() const { return list_groups(shards_); }

std::vector<sample> tar_samples::list_all() const {
  std::vector<sample> all;
  all.reserve(size());
  for (const auto& shard : shards_->all())
    for (const auto& group : shard.groups) all.emplace_back(shards_->key_of(shard, group));
  return all;
}

std::string tar_samples::identity_of(const sample& listed) const {
  auto [shard, group] = shards_->find(listed.key());
  return shards_->identity_of(*shard, *group);
}

lade::detail::tar_sample_reader tar_samples::read() const {
  return lade::detail::tar_sample_reader(shards_);
}

}  // namespace lade::io

namespace lade::detail {

// Members that are close to each other are read by one request.
task<sample> tar_sample_reader::operator()(sample listed) const {
  auto shards = shards_;
  auto [shard, group] = shards->find(listed.key());
  auto archive = co_await shards->open(*shard);
  std::vector<io::object_range> ranges;
  for (auto& place : group->fields) ranges.push_back({place.offset, place.bytes});
  auto contents = co_await io::read_ranges(std::move(archive), std::move(ranges));
  std::vector<field> fields;
  for (std::size_t i = 0; i < contents.size(); ++i)
    fields.emplace_back(group->fields[i].field, std::move(contents[i]));
  co_return shards->fields().make(listed.key(), std::move(fields));
}

}  // namespace lade::detail
