#include "mds_index.hpp"
#include "mds_sample.hpp"

#include <lade/buffer_pool.hpp>
#include <lade/byte_reader.hpp>
#include <lade/checksum.hpp>
#include <lade/error.hpp>
#include <lade/io/file.hpp>
#include <lade/io/formats/decompress.hpp>
#include <lade/io/formats/mds.hpp>
#include <lade/support/little_endian.hpp>
#include <lade/url.hpp>

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace lade::io {

struct mds::content {
  content(std::string directory, std::vector<mds_shard> parsed)
      : prefix(std::move(directory)), shards(std::move(parsed)) {}

  std::uint64_t samples() const noexcept { return shards.empty() ? 0 : shards.back().end; }
  std::string path_of(const mds_shard& shard) const { return prefix + shard.file; }
  std::string index_name() const { return without_secrets(prefix + "index.json"); }

  std::string prefix;  // of the shards' paths
  std::vector<mds_shard> shards;
};

[[noreturn]] static void refuse_mds_shard(const std::string& name, const std::string& reason) {
  throw error(errc::invalid_data, "read the shard " + name, reason);
}

// Makes a sample of a shard. `bytes` follow the shard's offsets.
static task<sample> make_mds_sample(std::string key, std::int64_t label, buffer bytes,
                                    mds_columns columns) {
  sample made(std::move(key), label);
  auto name = made.name();
  auto values = split_mds_sample(bytes.bytes(), *columns, name);
  auto unaligned = unaligned_bytes(values);
  buffer copies;
  if (unaligned > 0) copies = co_await allocate(unaligned);
  auto fields = mds_fields(values, bytes, copies, name);
  co_return std::move(made).with_fields(std::move(fields));
}

task<mds> open_mds(std::string directory) {
  if (!directory.empty() && !directory.ends_with('/')) directory += '/';
  auto file = co_await open_reader(directory + "index.json");
  auto text = co_await file->read_at(0, file->size());
  auto shards = parse_mds_index(text.text(), file->name());
  co_return mds(std::make_shared<const mds::content>(std::move(directory), std::move(shards)));
}

std::uint64_t mds::size() const noexcept { return content_->samples(); }

std::vector<sample> mds::shards() const {
  std::vector<sample> files;
  files.reserve(content_->shards.size());
  for (auto& shard : content_->shards)
    files.push_back(sample(content_->path_of(shard)).with_field(field("shard", files.size())));
  return files;
}

std::string mds::identity() const {
  crc64nvme names;
  for (auto& shard : content_->shards) {
    auto text = fmt::format("{} {} {}\n", shard.file, shard.samples, shard.bytes);
    names.update(std::as_bytes(std::span(text)));
  }
  return fmt::format("MDS of {} samples in {} shards, checksum {}", size(), content_->shards.size(),
                     names.value());
}

task<sample> mds::operator()(std::uint64_t index) const { return read(content_, index); }

task<sample> mds::read(std::shared_ptr<const content> from, std::uint64_t index) {
  if (index >= from->samples())
    throw error(errc::invalid_argument, "read a sample of " + from->index_name(),
                fmt::format("there is no sample {} of {}", index, from->samples()));
  auto& shard = *std::upper_bound(
      from->shards.begin(), from->shards.end(), index,
      [](std::uint64_t needed, const mds_shard& each) { return needed < each.end; });
  auto path = from->path_of(shard);
  auto name = without_secrets(path);
  auto number = index - (shard.end - shard.samples);
  if (shard.compressed)
    throw error(errc::unsupported, fmt::format("read sample {} of {}", number, name),
                "the shard is compressed; read it as a whole, with read_mds_shard");
  auto file = co_await open_reader(path);
  if (file->size() != shard.bytes)
    refuse_mds_shard(name,
                     fmt::format("it has {} bytes; the index says {}", file->size(), shard.bytes));
  auto offsets = co_await file->read_at(4 * (number + 1), 8);
  auto begin = support::load_little<std::uint32_t>(offsets.bytes(), 0);
  auto end = support::load_little<std::uint32_t>(offsets.bytes(), 1);
  if (begin > end || end > shard.bytes || begin < 4 * (shard.samples + 2))
    refuse_mds_shard(name, fmt::format("sample {} is at bytes {} to {}", number, begin, end));
  auto bytes = co_await file->read_at(begin, end - begin);
  co_return co_await make_mds_sample(fmt::format("{}/{}", name, number), sample::no_label,
                                     std::move(bytes), shard.columns);
}

async_generator<sample> read_mds_shard::operator()(sample shard) const {
  return mds::read_shard(dataset_.content_, std::move(shard), options_);
}

async_generator<sample> mds::read_shard(std::shared_ptr<const content> from, sample file,
                                        mds_options options) {
  auto& path = file.key();
  auto name = file.name();
  auto* index_field = file.find_field("shard");
  auto number =
      index_field && index_field->type() == field::kind::integer ? index_field->integer() : -1;
  if (number < 0 || static_cast<std::uint64_t>(number) >= from->shards.size() ||
      from->path_of(from->shards[static_cast<std::size_t>(number)]) != path)
    throw error(errc::invalid_argument, "read the shard " + name,
                "it is not listed in " + from->index_name());
  auto& shard = from->shards[static_cast<std::size_t>(number)];
  if (shard.bytes > options.max_bytes)
    throw error(errc::limit_exceeded, "read the shard " + name,
                fmt::format("it has {} bytes; max_bytes is {}", shard.bytes, options.max_bytes));
  auto content = stream(path);
  if (shard.compressed)
    content = decompress(std::move(content), name, {.max_bytes = options.max_bytes});
  stream_reader bytes(std::move(content), name);
  auto count = co_await bytes.read(4, "the number of samples");
  if (support::load_little<std::uint32_t>(count.bytes()) != shard.samples)
    refuse_mds_shard(
        name, fmt::format("it has {} samples; the index says {}",
                          support::load_little<std::uint32_t>(count.bytes()), shard.samples));
  auto offsets = co_await bytes.read(4 * (shard.samples + 1), "the offsets of samples");
  for (std::uint64_t i = 0; i < shard.samples; ++i) {
    std::uint64_t begin = support::load_little<std::uint32_t>(offsets.bytes(), i);
    std::uint64_t end = support::load_little<std::uint32_t>(offsets.bytes(), i + 1);
    bool follows = i == 0 ? begin >= bytes.position() : begin == bytes.position();
    if (!follows || end < begin || end > shard.bytes)
      refuse_mds_shard(name, fmt::format("sample {} is at bytes {} to {}", i, begin, end));
    co_await bytes.skip(begin - bytes.position(), "the data before the samples");
    auto row = co_await bytes.read(end - begin, "a sample");
    auto made = co_await make_mds_sample(fmt::format("{}/{}", name, i), file.label(),
                                         std::move(row), shard.columns);
    co_yield made;
  }
  auto left = co_await bytes.read_some(1);
  if (shard.samples > 0 && !left.empty())
    refuse_mds_shard(name, "it has data after its last sample");
}

}  // namespace lade::io
