#include "inflate.hpp"
#include "zip_directory.hpp"

#include <lade/buffer_pool.hpp>
#include <lade/continue_on.hpp>
#include <lade/error.hpp>
#include <lade/io/file.hpp>
#include <lade/io/formats/zip.hpp>
#include <lade/io/ranges.hpp>
#include <lade/runtime.hpp>
#include <lade/this_context.hpp>

#include <algorithm>
#include <numeric>
#include <utility>

#include <fmt/format.h>

namespace lade::io {

struct zip_archive::state {
  std::string_view name_of(std::size_t i) const noexcept { return members[i].name(); }

  state(std::shared_ptr<const byte_reader> reader, const zip_options& limits,
        std::vector<zip_member> listed)
      : from(std::move(reader)),
        options(limits),
        members(std::move(listed)),
        by_name(members.size()) {
    std::iota(by_name.begin(), by_name.end(), std::size_t{0});
    std::ranges::sort(by_name, {}, [this](std::size_t i) { return std::pair(name_of(i), i); });
  }

  std::shared_ptr<const byte_reader> from;
  zip_options options;
  std::vector<zip_member> members;
  std::vector<std::size_t> by_name;  // sorted; of equal names, the last in the directory is last
};

const std::string& zip_archive::name() const noexcept { return state_->from->name(); }

std::span<const zip_member> zip_archive::members() const noexcept { return state_->members; }

const zip_member* zip_archive::find(std::string_view name) const noexcept {
  auto& order = state_->by_name;
  auto behind = std::ranges::upper_bound(order, name, {},
                                         [this](std::size_t i) { return state_->name_of(i); });
  if (behind == order.begin()) return nullptr;
  auto& last = state_->members[*std::prev(behind)];
  return last.name() == name ? &last : nullptr;
}

std::vector<sample> zip_archive::samples() const {
  std::vector<sample> samples;
  for (auto& member : members())
    if (!member.is_directory()) samples.emplace_back(member.name());
  return samples;
}

task<buffer> zip_archive::read(zip_member member) const {
  return read_member(state_, std::move(member));
}

const zip_member& zip_archive::get(std::string_view name) const {
  auto* found = find(name);
  if (found) return *found;
  throw error(errc::invalid_argument, fmt::format("read {}/{}", this->name(), name),
              "the archive has no such member");
}

task<buffer> zip_archive::read(std::string name) const { return read(get(name)); }

task<std::vector<buffer>> zip_archive::read(std::vector<zip_member> members) const {
  return read_members(state_, std::move(members));
}

task<std::shared_ptr<const byte_reader>> zip_archive::open(zip_member member) const {
  return open_member(state_, std::move(member));
}

task<std::shared_ptr<const byte_reader>> zip_archive::open(std::string name) const {
  return open(get(name));
}

// The size of the local header at the front of `begin`. `all`: the bytes of the member, header
// included.
static std::uint64_t fitting_header_bytes(std::span<const std::byte> begin, std::uint64_t all,
                                          const zip_member& member, std::string_view name) {
  std::uint64_t header_bytes = zip_header_bytes(begin, name);
  if (header_bytes > all || member.compressed_size() > all - header_bytes)
    throw error(errc::invalid_data, "read " + std::string(name),
                fmt::format("its header of {} bytes leaves no space for its data", header_bytes));
  return header_bytes;
}

buffer stored_zip_data(const buffer& all, const zip_member& member, std::string_view name) {
  auto header_bytes = fitting_header_bytes(all.bytes(), all.size(), member, name);
  require_same_header(all.bytes().first(header_bytes), member, name);
  return all.slice(header_bytes, member.values().compressed_bytes);
}

void inflate_zip_data(std::span<const std::byte> from, std::span<std::byte> into,
                      std::string_view name) {
  if (inflate_exactly(from, into)) return;
  throw error(errc::invalid_data, "inflate " + std::string(name),
              fmt::format("its data are damaged, or not of {} bytes", into.size()));
}

void require_crc32(std::uint32_t found, const zip_member& member, std::string_view name) {
  if (found != member.crc32())
    throw error(errc::invalid_data, "read " + std::string(name), "its CRC-32 is wrong");
}

// The first bytes of a member: at least its local header, which agrees with the directory.
class zip_begin {
 public:
  zip_begin(buffer first, std::uint64_t header) : bytes(std::move(first)), header_bytes(header) {}

  buffer bytes;
  std::uint64_t header_bytes;
};

// Reads the first bytes of a member; if `wants_all`, a small member whole.
static task<zip_begin> read_zip_begin(const byte_reader& from, const zip_member& member,
                                      std::string_view name, bool wants_all) {
  constexpr std::uint64_t few = std::uint64_t{128} << 10;
  constexpr std::uint64_t usual_header = 512;
  auto& values = member.values();
  auto all = values.end - values.header_offset;
  auto first = wants_all && all <= few ? all : std::min(all, usual_header + member.name().size());
  auto begin = co_await from.read_at(values.header_offset, static_cast<std::size_t>(first));
  auto header_bytes = fitting_header_bytes(begin.bytes(), all, member, name);
  if (header_bytes > begin.size())
    begin = co_await from.read_at(values.header_offset, header_bytes);
  require_same_header(begin.bytes().first(header_bytes), member, name);
  co_return zip_begin(std::move(begin), header_bytes);
}

// Reads the stored data of a member. Stored data of a large member are read separately, into
// aligned memory.
static task<buffer> read_zip_data(const byte_reader& from, const zip_member& member,
                                  std::string_view name) {
  auto begin = co_await read_zip_begin(from, member, name, true);
  auto bytes = member.values().compressed_bytes;
  if (bytes <= begin.bytes.size() - begin.header_bytes)
    co_return begin.bytes.slice(begin.header_bytes, bytes);
  co_return co_await from.read_at(member.values().header_offset + begin.header_bytes, bytes);
}

task<std::shared_ptr<const byte_reader>> zip_archive::open_member(
    std::shared_ptr<const state> archive, zip_member member) {
  auto name = archive->from->name() + "/" + member.name();
  require_readable(member, archive->options, name);
  if (member.method() != zip_method::stored)
    throw error(errc::unsupported, "open " + name,
                "it is deflated, so that it can only be read as a whole");
  auto begin = co_await read_zip_begin(*archive->from, member, name, false);
  co_return std::make_shared<const part_reader>(archive->from,
                                                member.values().header_offset + begin.header_bytes,
                                                member.size(), std::move(name));
}

// Unpacks the stored data of a member.
static task<buffer> unpack_zip_data(buffer content, const zip_member& member,
                                    std::string_view name) {
  constexpr std::uint64_t quick_bytes = std::uint64_t{16} << 10;
  bool is_deflated = member.method() == zip_method::deflated;
  buffer inflated;
  if (is_deflated) inflated = co_await allocate(static_cast<std::size_t>(member.size()));
  if (member.size() > quick_bytes && on_reactor_thread()) co_await continue_on_pool();
  if (is_deflated) {
    inflate_zip_data(content.bytes(), inflated.bytes(), name);
    content = std::move(inflated);
  }
  require_crc32(crc32_of(content.bytes()), member, name);
  co_return content;
}

task<buffer> zip_archive::read_member(std::shared_ptr<const state> archive, zip_member member) {
  auto name = archive->from->name() + "/" + member.name();
  require_readable(member, archive->options, name);
  auto content = co_await read_zip_data(*archive->from, member, name);
  co_return co_await unpack_zip_data(std::move(content), member, name);
}

task<std::vector<buffer>> zip_archive::read_members(std::shared_ptr<const state> archive,
                                                    std::vector<zip_member> members) {
  std::vector<object_range> ranges;
  for (auto& member : members) {
    require_readable(member, archive->options, archive->from->name() + "/" + member.name());
    auto& values = member.values();
    ranges.push_back({values.header_offset, values.end - values.header_offset});
  }
  auto contents = co_await read_ranges(archive->from, std::move(ranges));
  for (std::size_t i = 0; i < members.size(); ++i) {
    auto name = archive->from->name() + "/" + members[i].name();
    auto data = stored_zip_data(contents[i], members[i], name);
    contents[i] = co_await unpack_zip_data(std::move(data), members[i], name);
  }
  co_return contents;
}

task<zip_archive> open_zip(std::shared_ptr<const byte_reader> from, zip_options options) {
  auto size = from->size();
  auto tail_bytes = static_cast<std::size_t>(std::min<std::uint64_t>(size, zip_tail_bytes));
  auto tail = co_await from->read_at(size - tail_bytes, tail_bytes);
  auto end = find_zip_end(tail.bytes(), size, from->name());
  buffer directory;
  if (end.directory_bytes <= tail_bytes && end.directory_offset >= size - tail_bytes)
    directory = tail.slice(static_cast<std::size_t>(end.directory_offset - (size - tail_bytes)),
                           static_cast<std::size_t>(end.directory_bytes));
  else
    directory =
        co_await from->read_at(end.directory_offset, static_cast<std::size_t>(end.directory_bytes));
  auto members = parse_zip_directory(directory.bytes(), end, from->name());
  co_return zip_archive(
      std::make_shared<const zip_archive::state>(std::move(from), options, std::move(members)));
}

task<zip_archive> open_zip(std::string path, zip_options options) {
  auto from = co_await open_reader(std::move(path));
  auto archive = co_await open_zip(std::move(from), options);
  co_return archive;
}

task<sample> read_zip::operator()(sample from) const {
  auto content = co_await archive_.read(from.key());
  co_return std::move(from).with_data(std::move(content));
}

}  // namespace lade::io
