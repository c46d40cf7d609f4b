#include <lade/byte_reader.hpp>
#include <lade/io/formats/tar.hpp>
#include <lade/task.hpp>

#include <optional>
#include <string_view>
#include <utility>

#include "tar_walk.hpp"

namespace lade::io {

using detail::tar_block_bytes;
using detail::tar_walk;

void damage_log::add(const error& what) {
  std::lock_guard lock(mutex_);
  ++count_;
  if (reports_.size() < max_reports) reports_.emplace_back(what.what());
}

std::uint64_t damage_log::count() const {
  std::lock_guard lock(mutex_);
  return count_;
}

std::vector<std::string> damage_log::reports() const {
  std::lock_guard lock(mutex_);
  return reports_;
}

// Reads bytes that the stream does not have buffered. Empty at the end of the stream, or if reading
// fails with damage that is only reported.
static task<std::optional<buffer>> read_tar_bytes(stream_reader& in, tar_walk& walk,
                                                  std::size_t bytes, bool may_end,
                                                  std::string_view part_name) {
  std::optional<buffer> content;
  try {
    bool ended = false;
    if (may_end) ended = co_await in.at_end();
    if (ended) {
      walk.end(in.position());
      co_return content;
    }
    content = co_await in.read(bytes, part_name);
  } catch (const error& failure) {
    content.reset();
    walk.end(failure);
  }
  co_return content;
}

static task<bool> skip_tar_bytes(stream_reader& in, tar_walk& walk, std::uint64_t bytes) {
  try {
    co_await in.skip(bytes, "a member");
  } catch (const error& failure) {
    walk.end(failure);
    co_return false;
  }
  co_return true;
}

static tar_member make_tar_member(tar_walk& walk, const buffer& padded, std::uint64_t end) {
  auto& entry = walk.entry();
  auto content = padded.slice(0, static_cast<std::size_t>(entry.bytes));
  return {std::move(entry.name), std::move(content), end - padded.size(), entry.modified,
          entry.mode};
}

// The name of the next part, for errors.
static std::string_view name_of(tar_walk::step step, tar_walk& walk) {
  if (step == tar_walk::step::member) return walk.entry().name;
  return step == tar_walk::step::header ? "a header" : "an extended header";
}

static async_generator<tar_member> walk_tar(stream_reader in, tar_walk walk) {
  auto step = tar_walk::step::header;
  while (step != tar_walk::step::over) {
    if (step == tar_walk::step::skip) {
      bool more = co_await skip_tar_bytes(in, walk, walk.padded_bytes());
      if (!more) break;
      step = tar_walk::step::header;
    }
    bool is_header = step == tar_walk::step::header;
    bool is_member = step == tar_walk::step::member;
    auto bytes = is_header ? tar_block_bytes : static_cast<std::size_t>(walk.padded_bytes());
    auto data = in.try_read(bytes);
    if (!data) {
      data = co_await read_tar_bytes(in, walk, bytes, is_header, name_of(step, walk));
    }
    if (!data) break;
    if (is_member) {
      auto member = make_tar_member(walk, *data, in.position());
      data.reset();
      co_yield std::move(member);
      step = tar_walk::step::header;
    } else if (is_header) {
      step = walk.add_block(data->text(), in.position() - bytes);
    } else {
      step = walk.add_extension(data->text());
    }
  }
}

async_generator<tar_member> tar_members(async_generator<buffer> archive, std::string name,
                                        tar_options options) {
  tar_walk walk(name, options);
  return walk_tar(stream_reader(std::move(archive), std::move(name)), std::move(walk));
}

async_generator<tar_member> tar_members(std::shared_ptr<const byte_reader> archive,
                                        tar_options options) {
  tar_walk walk(archive->name(), options);
  return walk_tar(stream_reader(std::move(archive)), std::move(walk));
}

}  // namespace lade::io
