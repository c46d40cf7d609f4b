#include <lade/error.hpp>
#include <lade/io/file.hpp>
#include <lade/io/store.hpp>
#include <lade/support/divide_list.hpp>
#include <lade/url.hpp>

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "indexed_shards.hpp"

namespace lade::detail {

indexed_shards::indexed_shards(io::shards shards, const io::tar_samples_options& options)
    : listed_(std::move(shards)),
      fields_{support::divide_list(options.read.fields), support::divide_list(options.read.data),
              std::string(options.read.label)} {
  shards_.reserve(listed_.names().size());
  for (const auto& name : listed_.names()) {
    shards_.push_back({name});
    bool is_new = by_name_.emplace(shards_.back().name, shards_.size() - 1).second;
    if (!is_new)
      throw error(errc::invalid_argument, "index shards",
                  without_secrets(name) + " is listed twice");
  }
}

[[noreturn]] static void refuse_group(const std::string& shard, errc code,
                                      const std::string& reason) {
  throw error(code, "index " + without_secrets(shard), reason);
}

void indexed_shards::add(std::size_t at, const io::tar_index& index) {
  auto& shard = shards_[at];
  shard.archive_bytes = index.archive_bytes();
  shard.identity = index.identity();
  for (const auto& entry : index.entries()) {
    auto name = divide_member_name(entry.name());
    if (!name) continue;
    if (shard.groups.empty() || shard.groups.back().key != name->key())
      shard.groups.push_back({name->key(), {}});
    auto& fields = shard.groups.back().fields;
    auto refuse = [&](errc code, const std::string& reason) {
      refuse_group(shard.name, code,
                   fmt::format("member {} at byte {}: {}", entry.name(), entry.offset(), reason));
    };
    if (std::ranges::find(fields, name->field(), &location::field) != fields.end())
      refuse(errc::invalid_data, "its sample has such a field already");
    if (fields.size() == most_sample_fields)
      refuse(errc::limit_exceeded,
             fmt::format("its sample has more than {} fields", most_sample_fields));
    fields.push_back({name->field(), entry.offset(), entry.bytes()});
  }
  for (std::size_t i = 0; i < shard.groups.size(); ++i) {
    auto& group = shard.groups[i];
    std::erase_if(group.fields, [&](const location& p) { return !fields_.contains(p.field); });
    if (!shard.by_key.emplace(group.key, i).second)
      refuse_group(shard.name, errc::invalid_data,
                   fmt::format("two samples have the key {}; read the shards as a stream instead",
                               group.key));
  }
}

void indexed_shards::number_samples() {
  ends_.reserve(shards_.size());
  for (const auto& shard : shards_) ends_.push_back(size() + shard.groups.size());
}

std::string indexed_shards::key_at(std::uint64_t i) const {
  auto end = std::ranges::upper_bound(ends_, i);
  if (end == ends_.end())
    throw error(errc::invalid_argument, fmt::format("list sample {}", i),
                fmt::format("the shards have {}", size()));
  const auto& shard = shards_[static_cast<std::size_t>(end - ends_.begin())];
  return key_of(shard, shard.groups[shard.groups.size() - static_cast<std::size_t>(*end - i)]);
}

std::string indexed_shards::identity_of(const one_shard& from,
                                        const sample_locations& sample) const {
  return listed_.identity_of(lade::sample(from.name)) + "/" + sample.key;
}

std::string indexed_shards::key_of(const one_shard& from, const sample_locations& sample) const {
  return from.name + "/" + sample.key;
}

// A name of a shard may begin like that of another one: the longest that fits decides.
std::pair<const indexed_shards::one_shard*, const indexed_shards::sample_locations*>
indexed_shards::find(const std::string& key) const {
  std::string_view text = key;
  for (auto slash = text.rfind('/'); slash != text.npos && slash > 0;
       slash = text.rfind('/', slash - 1)) {
    auto shard = by_name_.find(text.substr(0, slash));
    if (shard == by_name_.end()) continue;
    auto& found = shards_[shard->second];
    auto group = found.by_key.find(text.substr(slash + 1));
    if (group != found.by_key.end()) return {&found, &found.groups[group->second]};
  }
  throw error(errc::invalid_argument, "read " + without_secrets(key),
              "no indexed shard has such a sample");
}

std::shared_ptr<const byte_reader> indexed_shards::opened(const one_shard& shard) {
  std::lock_guard lock(mutex_);
  auto found = std::ranges::find(open_, &shard, [](auto& each) { return each.first; });
  if (found == open_.end()) return nullptr;
  std::rotate(found, found + 1, open_.end());
  return open_.back().second;
}

void indexed_shards::keep(const one_shard& shard, std::shared_ptr<const byte_reader> archive) {
  std::shared_ptr<const byte_reader> closed;  // outside of the lock
  std::lock_guard lock(mutex_);
  if (open_.size() == most_open) {
    closed = std::move(open_.front().second);
    open_.erase(open_.begin());
  }
  open_.emplace_back(&shard, std::move(archive));
}

task<std::string> identity_of_archive(std::string name, std::string etag) {
  if (io::find_store(name)) co_return etag;
  auto found = co_await io::stat(std::move(name));
  co_return std::to_string(found.modified.time_since_epoch().count());
}

task<std::shared_ptr<const byte_reader>> indexed_shards::open(const one_shard& shard) {
  if (auto archive = opened(shard)) co_return archive;
  auto archive = co_await io::open_reader(shard.name);
  if (archive->size() != shard.archive_bytes)
    throw error(errc::invalid_data, "read " + without_secrets(shard.name),
                fmt::format("it has {} bytes; when it was indexed, it had {}", archive->size(),
                            shard.archive_bytes));
  auto identity = co_await identity_of_archive(shard.name, std::string(archive->etag()));
  if (identity != shard.identity)
    throw error(errc::invalid_data, "read " + without_secrets(shard.name),
                "it has changed since it was indexed");
  keep(shard, archive);
  co_return archive;
}

}  // namespace lade::detail
