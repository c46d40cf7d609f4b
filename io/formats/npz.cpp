#include "inflate.hpp"
#include "npy_header.hpp"
#include "zip_directory.hpp"

#include <lade/buffer_pool.hpp>
#include <lade/error.hpp>
#include <lade/io/file.hpp>
#include <lade/io/formats/npy.hpp>
#include <lade/io/formats/npz.hpp>
#include <lade/url.hpp>

#include <algorithm>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace lade::io {

static constexpr std::string_view npy_suffix = ".npy";

// The field name of a member.
static std::string npz_name(const zip_member& member) {
  auto name = member.name();
  if (name.ends_with(npy_suffix)) name.resize(name.size() - npy_suffix.size());
  return name;
}

// Throws if two arrays have the same name, or all together are too large.
static void require_npz(std::span<const zip_member> members, std::string_view archive,
                        const zip_options& options) {
  std::uint64_t rest = options.max_bytes;
  std::vector<std::string> names;
  for (auto& member : members) {
    names.push_back(npz_name(member));
    if (member.method() == zip_method::stored) continue;
    if (member.size() > rest)
      throw error(
          errc::limit_exceeded, "read " + std::string(archive),
          fmt::format("its compressed arrays have more than max_bytes, {}", options.max_bytes));
    rest -= member.size();
  }
  std::ranges::sort(names);
  auto twice = std::ranges::adjacent_find(names);
  if (twice != names.end())
    throw error(errc::invalid_data, "read " + std::string(archive),
                "two arrays are called " + *twice);
}

static std::vector<zip_member> parse_npz_directory(const buffer& file, std::string_view name,
                                                   const zip_options& options) {
  auto tail = file.bytes().last(std::min(file.size(), zip_tail_bytes));
  auto end = find_zip_end(tail, file.size(), name);
  auto directory = file.slice(static_cast<std::size_t>(end.directory_offset),
                              static_cast<std::size_t>(end.directory_bytes));
  auto members = parse_zip_directory(directory.bytes(), end, name);
  require_npz(members, name, options);
  return members;
}

// Parses the header of an array. If that fails, reports damage if the checksum of its bytes is
// wrong.
static npy_header parse_member_header(std::span<const std::byte> content, const zip_member& member,
                                      std::string_view name) try {
  return parse_npy_header(content, name);
} catch (const error&) {
  require_crc32(crc32_of(content), member, name);
  throw;
}

// Parses the array of a stored member. Elements that are not aligned, the common case, are copied
// while their checksum is computed.
static tensor parse_stored_array(const buffer& content, const zip_member& member,
                                 std::string_view name) {
  auto header = parse_member_header(content.bytes(), member, name);
  auto prefix = content.bytes().first(header.data_offset);
  auto elements = content.bytes().subspan(header.data_offset);
  bool is_usable = header.is_usable(elements.data());
  buffer copy;
  if (!is_usable) copy = allocate_now(elements.size());
  if (is_usable || header.swapped || header.spec.type == element_type::boolean) {
    require_crc32(crc32_of(content.bytes()), member, name);
    return make_npy_tensor(header, content, std::move(copy), name);
  }
  require_crc32(copy_with_crc32(elements, copy.data(), crc32_of(prefix)), member, name);
  return make_stored_tensor(header.spec, header.fortran_order, std::move(copy));
}

// The content of a member that is deflated, or is not an array.
static buffer parse_npz_content(buffer content, const zip_member& member, std::string_view name) {
  if (member.method() == zip_method::deflated) {
    auto inflated = allocate_now(static_cast<std::size_t>(member.size()));
    inflate_zip_data(content.bytes(), inflated.bytes(), name);
    content = std::move(inflated);
  }
  require_crc32(crc32_of(content.bytes()), member, name);
  return content;
}

static field parse_npz_member(const buffer& file, const zip_member& member,
                              const zip_options& options, std::string_view archive) {
  auto name = fmt::format("{}/{}", archive, member.name());
  require_readable(member, options, name);
  auto& values = member.values();
  auto all = file.slice(static_cast<std::size_t>(values.header_offset),
                        static_cast<std::size_t>(values.end - values.header_offset));
  auto content = stored_zip_data(all, member, name);
  bool is_array = member.name().ends_with(npy_suffix);
  if (is_array && member.method() == zip_method::stored)
    return field(npz_name(member), parse_stored_array(content, member, name));
  content = parse_npz_content(std::move(content), member, name);
  if (!is_array) return field(member.name(), std::move(content));
  return field(npz_name(member), parse_npy(content, name));
}

task<std::vector<field>> read_npz(std::shared_ptr<const byte_reader> from, zip_options options) {
  auto archive = co_await open_zip(std::move(from), options);
  require_npz(archive.members(), archive.name(), options);
  std::vector<field> fields;
  for (auto& member : archive.members()) {
    if (member.is_directory()) continue;
    auto content = co_await archive.read(member);
    if (!member.name().ends_with(npy_suffix)) {
      fields.emplace_back(member.name(), std::move(content));
      continue;
    }
    auto array = co_await load_npy(std::move(content), archive.name() + "/" + member.name());
    fields.emplace_back(npz_name(member), std::move(array));
  }
  co_return fields;
}

// Small files are read at once, and so are objects behind URLs, in parallel parts. In large files,
// each array is read separately into aligned memory.
task<std::vector<field>> read_npz(std::string path, zip_options options) {
  constexpr std::uint64_t small = std::uint64_t{256} << 10;
  if (!scheme_of(path).empty()) {
    auto content = co_await read_file(path);
    co_return co_await read_npz(
        std::make_shared<const memory_reader>(std::move(content), without_secrets(path)), options);
  }
  auto from = co_await open_reader(path);
  auto size = from->size();
  if (size <= small) {
    auto content = co_await from->read_at(0, static_cast<std::size_t>(size));
    from = std::make_shared<memory_reader>(std::move(content), std::move(path));
  }
  co_return co_await read_npz(std::move(from), options);
}

// An upper bound: stored arrays that happen to be aligned need no memory.
std::size_t decode_npz::memory_needed(const sample& from) const {
  std::size_t bytes = 0;
  for (auto& member : parse_npz_directory(from.data(), from.name(), options_))
    bytes += static_cast<std::size_t>(member.size());
  return bytes;
}

sample decode_npz::operator()(sample from) const {
  std::vector<field> fields(from.fields().begin(), from.fields().end());
  for (auto& member : parse_npz_directory(from.data(), from.name(), options_))
    if (!member.is_directory())
      fields.push_back(parse_npz_member(from.data(), member, options_, from.name()));
  return std::move(from).without_data().with_fields(std::move(fields));
}

}  // namespace lade::io
