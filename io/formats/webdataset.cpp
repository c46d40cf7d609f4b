#include <lade/error.hpp>
#include <lade/io/file.hpp>
#include <lade/io/formats/webdataset.hpp>
#include <lade/support/divide_list.hpp>
#include <lade/support/require.hpp>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "sample_name.hpp"
#include "tar_walk.hpp"

namespace lade::detail {

// Options with owned copies of their strings.
struct read_tar_settings {
  explicit read_tar_settings(const io::read_tar_options& options)
      : fields{support::divide_list(options.fields), support::divide_list(options.data),
               std::string(options.label)},
        chunk_bytes(options.chunk_bytes),
        tar(options.tar),
        decompress(options.decompress) {
    support::require_count("read_tar", "chunk_bytes", chunk_bytes, {.least = 1});
    tar_walk("shards", tar);
  }

  sample_fields fields;
  std::size_t chunk_bytes;
  io::tar_options tar;
  io::decompress_options decompress;
};

// Collects the fields of one sample.
class sample_group {
 public:
  explicit sample_group(const std::string& shard) : shard_(shard) {}

  bool is(const std::string& key) const noexcept { return started_ && key_ == key; }
  bool has_started() const noexcept { return started_; }

  void begin(const std::string& key) {
    key_ = key;
    started_ = true;
    names_.clear();
    fields_.clear();
  }

  // Throws error(invalid_data) for a duplicate field, and error(limit_exceeded) for too many
  // fields.
  void add(const std::string& name, const io::tar_member& member, const sample_fields& selection) {
    if (std::ranges::find(names_, name) != names_.end())
      refuse(errc::invalid_data, member, fmt::format("its sample has a field {} already", name));
    if (names_.size() == most_sample_fields)
      refuse(errc::limit_exceeded, member,
             fmt::format("its sample has more than {} fields", most_sample_fields));
    names_.push_back(name);
    if (selection.contains(name)) fields_.emplace_back(name, member.content());
  }

  sample end(const sample_fields& selection) {
    started_ = false;
    return selection.make(shard_ + "/" + key_, std::exchange(fields_, {}));
  }

 private:
  [[noreturn]] void refuse(errc code, const io::tar_member& member,
                           const std::string& reason) const {
    throw error(code, "read " + shard_,
                fmt::format("member {} at byte {}: {}", member.name(), member.offset(), reason));
  }

  std::string shard_;
  std::string key_;
  bool started_ = false;
  std::vector<std::string> names_;  // of all fields, including fields that are not kept
  std::vector<field> fields_;
};

static async_generator<sample> group_members(async_generator<io::tar_member> members,
                                             std::string shard,
                                             std::shared_ptr<const read_tar_settings> settings) {
  sample_group group(shard);
  while (auto* member = co_await members.next()) {
    auto name = divide_member_name(member->name());
    if (!name) continue;
    if (!group.is(name->key())) {
      if (group.has_started()) {
        auto made = group.end(settings->fields);
        co_yield std::move(made);
      }
      group.begin(name->key());
    }
    group.add(name->field(), *member, settings->fields);
  }
  if (!group.has_started()) co_return;
  auto made = group.end(settings->fields);
  co_yield std::move(made);
}

async_generator<sample> read_tar::operator()(sample shard) const {
  auto settings =
      settings_ ? settings_ : std::make_shared<const read_tar_settings>(io::read_tar_options{});
  auto bytes = io::stream(shard.key(), {.chunk_bytes = settings->chunk_bytes});
  auto archive = io::decompress(std::move(bytes), shard.name(), settings->decompress);
  auto members = io::tar_members(std::move(archive), shard.name(), settings->tar);
  return group_members(std::move(members), shard.name(), std::move(settings));
}

read_tar read_tar::with(const io::read_tar_options& options) const {
  return read_tar(std::make_shared<const read_tar_settings>(options));
}

}  // namespace lade::detail
