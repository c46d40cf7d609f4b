#include "inflate.hpp"
#include "zip_directory.hpp"

#include <lade/buffer_pool.hpp>
#include <lade/error.hpp>
#include <lade/io/file.hpp>
#include <lade/io/formats/zip.hpp>

#include <algorithm>
#include <numeric>
#include <utility>

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

task<buffer> zip_archive::read(std::string name) const {
  auto* found = find(name);
  if (!found)
    throw error(errc::invalid_argument, "read " + this->name() + "/" + name,
                "the archive has no such member");
  return read(*found);
}

// The data of a member as they are stored. Those of a file are read together with their header if
// they are few; otherwise by themselves, so that they are aligned.
static task<buffer> read_zip_data(const byte_reader& from, const zip_member& member,
                                  std::string_view name) {
  constexpr std::uint64_t few = std::uint64_t{128} << 10;
  constexpr std::uint64_t usual_header = 512;
  auto& values = member.values();
  auto all = values.end - values.header_offset;
  auto first = std::min(all, all <= few ? few : usual_header + member.name().size());
  auto begin = co_await from.read_at(values.header_offset, static_cast<std::size_t>(first));
  std::uint64_t header_bytes = zip_header_bytes(begin.bytes(), name);
  if (header_bytes > all || values.compressed_bytes > all - header_bytes)
    throw error(
        errc::invalid_data, "read " + std::string(name),
        "its header of " + std::to_string(header_bytes) + " bytes leaves no room for its data");
  if (header_bytes > begin.size())
    begin = co_await from.read_at(values.header_offset, header_bytes);
  require_same_header(begin.bytes().first(header_bytes), member, name);
  if (values.compressed_bytes <= begin.size() - header_bytes)
    co_return begin.slice(header_bytes, values.compressed_bytes);
  co_return co_await from.read_at(values.header_offset + header_bytes, values.compressed_bytes);
}

task<buffer> zip_archive::read_member(std::shared_ptr<const state> archive, zip_member member) {
  auto name = archive->from->name() + "/" + member.name();
  require_readable(member, archive->options, name);
  auto content = co_await read_zip_data(*archive->from, member, name);
  if (member.method() == zip_method::deflated) {
    auto inflated = co_await allocate(static_cast<std::size_t>(member.size()));
    if (!inflate_exactly(content.bytes(), inflated.bytes()))
      throw error(errc::invalid_data, "inflate " + name,
                  "its data are damaged, or not of " + std::to_string(member.size()) + " bytes");
    content = std::move(inflated);
  }
  if (crc32_of(content.bytes()) != member.crc32())
    throw error(errc::invalid_data, "read " + name, "its CRC-32 is wrong");
  co_return content;
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
