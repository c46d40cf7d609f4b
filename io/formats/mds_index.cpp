#include "mds_index.hpp"

#include <lade/error.hpp>
#include <lade/support/json_reader.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>

#include <fmt/format.h>

namespace lade::io {

using support::json_reader;

// Reads one index.json.
class mds_index_parser {
 public:
  mds_index_parser(std::string_view text, std::string_view name) : json_(text, name) {}

  std::vector<mds_shard> parse() {
    json_.object([this](const std::string& member) {
      if (member == "version")
        require_version();
      else if (member == "shards")
        json_.array([this] { read_shard(); });
      else
        json_.skip();
    });
    json_.end();
    return std::move(shards_);
  }

 private:
  struct stored_file {
    std::string name;
    std::uint64_t bytes = 0;
  };

  // The members of a shard as stored.
  struct description {
    std::string format;
    std::string compression;
    std::vector<std::string> names;
    std::vector<std::string> encodings;
    std::vector<std::optional<std::uint64_t>> sizes;
    std::optional<stored_file> raw;
    std::optional<stored_file> zip;
    std::optional<std::uint64_t> samples;

    bool has_columns_of(const description& other) const {
      return names == other.names && encodings == other.encodings && sizes == other.sizes;
    }
  };

  [[noreturn]] void refuse(std::string_view reason) const {
    json_.refuse(fmt::format("shard {}: {}", shards_.size(), reason));
  }

  void require_version() {
    if (json_.unsigned_integer() != 2) json_.refuse("a version other than 2");
  }

  // Returns whether the next value is not null. Consumes a null.
  bool has_value() {
    if (json_.next() != json_reader::kind::null) return true;
    json_.null();
    return false;
  }

  void read_shard() {
    description shard;
    json_.object([&](const std::string& member) { read_member(member, shard); });
    add(std::move(shard));
  }

  void read_member(const std::string& member, description& shard) {
    if (member == "version")
      require_version();
    else if (member == "format")
      shard.format = json_.string();
    else if (member == "compression")
      shard.compression = has_value() ? json_.string() : "";
    else if (member == "column_names")
      json_.array([&] { shard.names.push_back(json_.string()); });
    else if (member == "column_encodings")
      json_.array([&] { shard.encodings.push_back(json_.string()); });
    else if (member == "column_sizes")
      json_.array([&] { shard.sizes.push_back(read_size()); });
    else if (member == "raw_data")
      shard.raw = read_file();
    else if (member == "zip_data")
      shard.zip = read_file();
    else if (member == "samples")
      shard.samples = json_.unsigned_integer();
    else
      json_.skip();
  }

  std::optional<std::uint64_t> read_size() {
    if (!has_value()) return std::nullopt;
    return json_.unsigned_integer();
  }

  std::optional<stored_file> read_file() {
    if (!has_value()) return std::nullopt;
    stored_file stored;
    json_.object([&](const std::string& member) {
      if (member == "basename")
        stored.name = json_.string();
      else if (member == "bytes")
        stored.bytes = json_.unsigned_integer();
      else
        json_.skip();
    });
    return stored;
  }

  // Throws if a name leaves the directory.
  void require_below(const std::string& name) const {
    auto text = "/" + name + "/";
    bool leaves = name.empty() || name.front() == '/' || text.find("/../") != text.npos ||
                  name.find('\0') != name.npos;
    if (leaves) refuse(fmt::format("\"{}\" is not a file below the index", name));
  }

  void require_compression(std::string_view compression) const {
    auto kind = compression.substr(0, compression.find(':'));
    if (kind != "zstd" && kind != "gz")
      throw error(errc::unsupported, fmt::format("open shard {} of MDS", shards_.size()),
                  fmt::format("its compression is \"{}\"", compression));
  }

  void add(description shard) {
    if (shard.format != "mds")
      throw error(errc::unsupported, fmt::format("open shard {} of MDS", shards_.size()),
                  fmt::format("its format is \"{}\"", shard.format));
    if (!shard.raw || !shard.samples) refuse("it lacks raw_data or samples");
    if (shard.zip) require_compression(shard.compression);
    auto& stored = shard.zip ? *shard.zip : *shard.raw;
    require_below(stored.name);
    if (shard.raw->bytes > std::numeric_limits<std::uint32_t>::max())
      refuse(fmt::format("{} bytes are more than offsets of 32 bits reach", shard.raw->bytes));
    if (shard.raw->bytes < 8 || *shard.samples > (shard.raw->bytes - 8) / 4)
      refuse(fmt::format("{} bytes cannot hold {} samples", shard.raw->bytes, *shard.samples));
    std::uint64_t end = shards_.empty() ? 0 : shards_.back().end;
    if (__builtin_add_overflow(end, *shard.samples, &end)) refuse("more samples than 2^64");
    bool is_like_before = last_ && shard.has_columns_of(*last_);
    auto columns = is_like_before ? shards_.back().columns : columns_of(shard);
    shards_.push_back({stored.name, shard.raw->bytes, shard.zip.has_value(), *shard.samples, end,
                       std::move(columns)});
    last_ = std::move(shard);
  }

  mds_columns columns_of(const description& shard) const {
    constexpr std::size_t most = 4096;
    auto count = shard.names.size();
    if (count > most || shard.encodings.size() != count || shard.sizes.size() != count)
      refuse("its columns do not each have a name, an encoding and a size, or are more than 4096");
    auto names = shard.names;
    std::sort(names.begin(), names.end());
    auto twice = std::adjacent_find(names.begin(), names.end());
    if (twice != names.end()) refuse(fmt::format("two columns are called \"{}\"", *twice));
    std::vector<mds_column> columns;
    for (std::size_t i = 0; i < count; ++i) {
      columns.push_back(parse_mds_column(shard.names[i], shard.encodings[i]));
      if (columns[i].size != shard.sizes[i])
        refuse(
            fmt::format("the size of column \"{}\" is not that of its encoding", shard.names[i]));
    }
    return std::make_shared<const std::vector<mds_column>>(std::move(columns));
  }

  json_reader json_;
  std::vector<mds_shard> shards_;
  std::optional<description> last_;
};

std::vector<mds_shard> parse_mds_index(std::string_view text, std::string_view name) {
  return mds_index_parser(text, name).parse();
}

}  // namespace lade::io
