#include "zip_directory.hpp"

#include <lade/error.hpp>
#include <lade/support/little_endian.hpp>

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

namespace lade::io {

// Signatures of records, and the values of fields that refer to the zip64 extra field.
static constexpr std::uint32_t zip_local_mark = 0x04034b50;
static constexpr std::uint32_t zip_central_mark = 0x02014b50;
static constexpr std::uint32_t zip_end_mark = 0x06054b50;
static constexpr std::uint32_t zip64_end_mark = 0x06064b50;
static constexpr std::uint32_t zip64_locator_mark = 0x07064b50;
static constexpr std::uint16_t zip_full16 = 0xffff;
static constexpr std::uint32_t zip_full32 = 0xffffffff;
static constexpr std::uint16_t zip_encrypted = 1;
static constexpr std::uint16_t zip_descriptor_follows = 1 << 3;

[[noreturn]] static void refuse_zip(std::string_view name, const std::string& reason,
                                    errc code = errc::invalid_data) {
  throw error(code, "read " + std::string(name), reason);
}

// Reads numbers of a record by their offsets. The offsets must be inside.
struct zip_record {
  std::span<const std::byte> bytes;

  std::uint16_t u16(std::size_t at) const noexcept { return get<std::uint16_t>(at); }
  std::uint32_t u32(std::size_t at) const noexcept { return get<std::uint32_t>(at); }
  std::uint64_t u64(std::size_t at) const noexcept { return get<std::uint64_t>(at); }
  std::string_view text(std::size_t at, std::size_t length) const noexcept {
    return {reinterpret_cast<const char*>(bytes.data()) + at, length};
  }

 private:
  template <class T>
  T get(std::size_t at) const noexcept {
    return support::load_little<T>(bytes.data() + at);
  }
};

// The position of the end record, whose comment ends at the end of the file.
static std::size_t find_zip_end_record(std::span<const std::byte> tail, std::string_view name) {
  constexpr std::size_t record_bytes = 22;
  for (auto at = tail.size(); at >= record_bytes; --at) {
    zip_record record{tail.subspan(at - record_bytes)};
    if (record.u32(0) == zip_end_mark && record.u16(20) == tail.size() - at)
      return at - record_bytes;
  }
  refuse_zip(name, "it has no end of a central directory: it is no ZIP archive, or cut off");
}

// Whether a field of the short record agrees with that of zip64.
template <class T>
static bool agrees_with_zip64(T brief, std::uint64_t whole) noexcept {
  return brief == static_cast<T>(~T{0}) || brief == whole;
}

// The position of the zip64 end record, 56 bytes before its locator; empty if there is no locator.
static std::optional<std::size_t> find_zip64_record(std::span<const std::byte> tail,
                                                    std::size_t end_record, std::string_view name) {
  if (end_record < 20) return std::nullopt;
  zip_record locator{tail.subspan(end_record - 20)};
  if (locator.u32(0) != zip64_locator_mark) return std::nullopt;
  if (locator.u32(4) != 0 || locator.u32(16) > 1)
    refuse_zip(name, "archives of several disks are not supported", errc::unsupported);
  if (end_record < 76 || zip_record{tail.subspan(end_record - 76)}.u32(0) != zip64_end_mark)
    refuse_zip(name, "the end of its zip64 directory is not where it must be");
  return end_record - 76;
}

static void require_one_disk(std::uint64_t disk, std::uint64_t directory_disk, std::uint64_t here,
                             std::uint64_t members, std::string_view name) {
  if (disk != 0 || directory_disk != 0 || here != members)
    refuse_zip(name, "archives of several disks are not supported", errc::unsupported);
}

zip_end find_zip_end(std::span<const std::byte> tail, std::uint64_t size, std::string_view name) {
  auto at = find_zip_end_record(tail, name);
  zip_record brief{tail.subspan(at)};
  zip_end end{brief.u16(10), brief.u32(16), brief.u32(12), 0};
  auto wide = find_zip64_record(tail, at, name);
  if (wide) {
    zip_record record{tail.subspan(*wide)};
    require_one_disk(record.u32(16), record.u32(20), record.u64(24), record.u64(32), name);
    end = {record.u64(32), record.u64(48), record.u64(40), 0};
    if (!agrees_with_zip64(brief.u16(10), end.members) ||
        !agrees_with_zip64(brief.u32(12), end.directory_bytes) ||
        !agrees_with_zip64(brief.u32(16), end.directory_offset))
      refuse_zip(name, "its two ends of the central directory differ");
  } else {
    require_one_disk(brief.u16(4), brief.u16(6), brief.u16(8), brief.u16(10), name);
  }
  auto directory_end = size - tail.size() + wide.value_or(at);
  if (end.directory_bytes > directory_end ||
      end.directory_offset > directory_end - end.directory_bytes)
    refuse_zip(name,
               fmt::format("its central directory of {} bytes at {} is not before its end at {}",
                           end.directory_bytes, end.directory_offset, directory_end));
  auto begin = directory_end - end.directory_bytes;
  end.prefix_bytes = begin - std::exchange(end.directory_offset, begin);
  if (wide && zip_record{tail.subspan(at - 20)}.u64(8) != directory_end - end.prefix_bytes)
    refuse_zip(name, "the locator of its zip64 directory points elsewhere");
  return end;
}

// Reads the values that do not fit into a header from the zip64 field in `extra`, in the order of
// the format. Returns false if the extra fields are damaged.
static bool take_zip64(std::span<const std::byte> extra,
                       std::span<std::uint64_t*> values) noexcept {
  while (extra.size() >= 4) {
    zip_record field{extra};
    std::size_t bytes = field.u16(2);
    if (bytes > extra.size() - 4) return false;
    if (field.u16(0) == 1) {
      if (bytes < 8 * values.size()) return false;
      for (std::size_t i = 0; i < values.size(); ++i) *values[i] = field.u64(4 + 8 * i);
      return true;
    }
    extra = extra.subspan(4 + bytes);
  }
  return values.empty();
}

// The same for the sizes of a member and, in the directory, its offset.
static bool widen_by_zip64(zip_member::numbers& values, bool with_offset,
                           std::span<const std::byte> extra) noexcept {
  std::uint64_t* wanted[3];
  std::size_t count = 0;
  for (auto* each : {&values.bytes, &values.compressed_bytes})
    if (*each == zip_full32) wanted[count++] = each;
  if (with_offset && values.header_offset == zip_full32) wanted[count++] = &values.header_offset;
  return take_zip64(extra, std::span(wanted).first(count));
}

static constexpr std::size_t zip_central_bytes = 46;  // without name, extra fields and comment

// Reads the first member of a directory, and removes it from `directory`.
static zip_member take_zip_member(std::span<const std::byte>& directory, const zip_end& end,
                                  std::string_view name) {
  auto refuse_here = [&](const std::string& reason) {
    auto at = end.directory_offset + end.directory_bytes - directory.size();
    refuse_zip(name, fmt::format("{} (at byte {})", reason, at));
  };
  zip_record record{directory};
  if (directory.size() < zip_central_bytes || record.u32(0) != zip_central_mark)
    refuse_here("its central directory has no member where one must be");
  std::size_t name_bytes = record.u16(28);
  std::size_t extra_bytes = record.u16(30);
  auto bytes = zip_central_bytes + name_bytes + extra_bytes + record.u16(32);
  if (bytes > directory.size()) refuse_here("a member of its central directory is cut off");
  std::string member(record.text(zip_central_bytes, name_bytes));
  zip_member::numbers values{
      record.u32(42), 0, record.u32(20), record.u32(24), record.u32(16), record.u16(10),
      record.u16(8)};
  if (record.u16(34) != 0 && record.u16(34) != zip_full16)
    refuse_zip(name, "archives of several disks are not supported", errc::unsupported);
  if (!widen_by_zip64(values, true, directory.subspan(zip_central_bytes + name_bytes, extra_bytes)))
    refuse_here(fmt::format("the extra fields of {} are damaged", member));
  if (__builtin_add_overflow(values.header_offset, end.prefix_bytes, &values.header_offset))
    refuse_here(fmt::format("the offset of {} is beyond all files", member));
  directory = directory.subspan(bytes);
  return zip_member(std::move(member), values);
}

// The least offset at which a member can end: after its local header without extra fields, and its
// data. Empty if that overflows.
static std::optional<std::uint64_t> least_zip_end(const zip_member& member) noexcept {
  std::uint64_t end = 0;
  if (__builtin_add_overflow(member.values().header_offset, zip_local_bytes + member.name().size(),
                             &end) ||
      __builtin_add_overflow(end, member.compressed_size(), &end))
    return std::nullopt;
  return end;
}

// Sets the end of each member to the start of the next one. Throws if a member is longer.
static void bound_zip_members(std::vector<zip_member>& members, const zip_end& end,
                              std::string_view name) {
  std::vector<std::size_t> order(members.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  auto offset_of = [&](std::size_t i) { return members[i].values().header_offset; };
  std::ranges::sort(order, {}, offset_of);
  for (std::size_t i = 0; i < order.size(); ++i) {
    auto& member = members[order[i]];
    bool last = i + 1 == order.size();
    auto values = member.values();
    values.end = last ? end.directory_offset : offset_of(order[i + 1]);
    auto least = least_zip_end(member);
    if (!least || *least > values.end)
      refuse_zip(name, fmt::format("{} of {} bytes at {} overlaps {}", member.name(),
                                   member.compressed_size(), values.header_offset,
                                   last ? "the central directory" : members[order[i + 1]].name()));
    member = zip_member(member.name(), values);
  }
}

std::vector<zip_member> parse_zip_directory(std::span<const std::byte> directory,
                                            const zip_end& end, std::string_view name) {
  if (end.members > directory.size() / zip_central_bytes)
    refuse_zip(name, fmt::format("its central directory of {} bytes claims {} members",
                                 directory.size(), end.members));
  std::vector<zip_member> members;
  members.reserve(end.members);
  while (members.size() < end.members) members.push_back(take_zip_member(directory, end, name));
  if (!directory.empty()) refuse_zip(name, "its central directory has bytes after its members");
  bound_zip_members(members, end, name);
  return members;
}

void require_readable(const zip_member& member, const zip_options& options, std::string_view name) {
  using enum zip_method;
  constexpr std::uint64_t most_deflated = 1032;  // largest ratio: 258 bytes from 2 bits
  if (member.is_encrypted()) refuse_zip(name, "encryption is not supported", errc::unsupported);
  switch (member.method()) {
    case stored:
      if (member.size() != member.compressed_size())
        refuse_zip(name, "it is stored, and its two sizes differ");
      return;
    case deflated:
      if (member.size() > options.max_bytes)
        refuse_zip(
            name, fmt::format("it has {} bytes; max_bytes is {}", member.size(), options.max_bytes),
            errc::limit_exceeded);
      if (member.size() / most_deflated > member.compressed_size())
        refuse_zip(name, fmt::format("{} bytes cannot become {}", member.compressed_size(),
                                     member.size()));
      return;
  }
  refuse_zip(name, fmt::format("compression method {} is not supported", member.values().method),
             errc::unsupported);
}

std::size_t zip_header_bytes(std::span<const std::byte> bytes, std::string_view name) {
  zip_record header{bytes};
  if (bytes.size() < zip_local_bytes || header.u32(0) != zip_local_mark)
    refuse_zip(name, "there is no member at its offset");
  return zip_local_bytes + header.u16(26) + header.u16(28);
}

// If sizes and checksum follow the data, the local header may hold zeros.
void require_same_header(std::span<const std::byte> bytes, const zip_member& member,
                         std::string_view name) {
  zip_record header{bytes};
  std::size_t name_bytes = header.u16(26);
  auto& listed = member.values();
  zip_member::numbers values{0, 0, header.u32(18), header.u32(22), header.u32(14), 0, 0};
  bool later = (header.u16(6) & zip_descriptor_follows) != 0;
  auto differ = [later](auto local, auto central) {
    return local != central && !(later && local == 0);
  };
  if (header.text(zip_local_bytes, name_bytes) != member.name())
    refuse_zip(name, "its local header has another name");
  if (!widen_by_zip64(values, false, bytes.subspan(zip_local_bytes + name_bytes)))
    refuse_zip(name, "the extra fields of its local header are damaged");
  if (header.u16(8) != listed.method || ((header.u16(6) ^ listed.flags) & zip_encrypted) != 0 ||
      differ(values.crc32, listed.crc32) || differ(values.bytes, listed.bytes) ||
      differ(values.compressed_bytes, listed.compressed_bytes))
    refuse_zip(name, "its local header differs from the central directory");
}

}  // namespace lade::io
