// ZIP archives: random access to members, by name and by number.
//
// Source of the format: PKWARE's APPNOTE.TXT 6.3.10, with zip64.
//
// - Members may be stored or deflated. Members with other methods, and encrypted members, are
//   listed; reading them throws error(unsupported). Archives of several disks are refused.
// - The central directory has precedence, and each member's local header must agree with it. The
//   CRC-32 of each member that is read as a whole is verified.
// - Two members that share bytes are invalid. So an archive cannot expand to more than 1032 times
//   its size, the maximum of deflate.
// - Bytes before the archive, such as a self-extracting program, are allowed.
// - Names are bytes: UTF-8 if has_utf8_name(), otherwise usually code page 437. They may be any
//   text, also "../x", so do not open files by them.

#pragma once

#include <lade/buffer.hpp>
#include <lade/byte_reader.hpp>
#include <lade/sample.hpp>
#include <lade/task.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lade::io {

// The compression of a member. Other numbers are possible, and are refused.
enum class zip_method : std::uint16_t { stored = 0, deflated = 8 };

// The entry of a member in the central directory.
class zip_member {
 public:
  struct numbers {
    std::uint64_t header_offset = 0;  // position of the local header in the file
    std::uint64_t end = 0;            // position of the next member or the directory
    std::uint64_t compressed_bytes = 0;
    std::uint64_t bytes = 0;
    std::uint32_t crc32 = 0;
    std::uint16_t method = 0;
    std::uint16_t flags = 0;
  };

  zip_member(std::string name, const numbers& values) : name_(std::move(name)), values_(values) {}

  const std::string& name() const noexcept { return name_; }
  std::uint64_t size() const noexcept { return values_.bytes; }
  std::uint64_t compressed_size() const noexcept { return values_.compressed_bytes; }
  std::uint32_t crc32() const noexcept { return values_.crc32; }
  zip_method method() const noexcept { return static_cast<zip_method>(values_.method); }
  bool is_directory() const noexcept { return name_.ends_with('/'); }
  bool is_encrypted() const noexcept { return (values_.flags & 1) != 0; }
  bool has_utf8_name() const noexcept { return (values_.flags & 1 << 11) != 0; }
  const numbers& values() const noexcept { return values_; }

 private:
  std::string name_;
  numbers values_;
};

struct zip_options {
  // Maximum decompressed size of a member in bytes. A larger member is refused with
  // errc::limit_exceeded before memory is allocated. Stored members have no limit, because they are
  // no larger than the archive.
  std::uint64_t max_bytes = std::uint64_t{1} << 30;
};

// An open archive. A small value: copies share the directory and the reader and keep both alive.
// Any thread may use it. Any number of reads may be in flight.
class zip_archive {
 public:
  // The name of the archive in errors.
  const std::string& name() const noexcept;

  // All members in the order of the directory, directories included.
  std::span<const zip_member> members() const noexcept;

  // Returns the member of that name, the last one if there are several, or null. A binary search.
  const zip_member* find(std::string_view name) const noexcept;

  // Returns the content of a member: a view of the archive's memory if the member is stored and the
  // archive is in memory; otherwise memory of the caller's pool. Requires a runtime if the reader
  // requires one. Throws error(invalid_data), error(unsupported) or error(limit_exceeded) naming
  // the archive and the member.
  task<buffer> read(zip_member member) const;

  // The same by name. Throws error(invalid_argument) if there is no such member.
  task<buffer> read(std::string name) const;

  // Returns the contents of several members, in the order of `members`. Neighbouring members are
  // merged into one read, and reads run in parallel, as in read_ranges: for an archive in a store.
  // Stored members of a merged read share memory. Throws as `read` does, for the first member that
  // fails.
  task<std::vector<buffer>> read(std::vector<zip_member> members) const;

  // Opens a stored member for random access: a tar archive, an array or a video in the archive. The
  // returned reader keeps the archive's reader alive, has the name "ARCHIVE/MEMBER", and reads only
  // the requested ranges. The CRC-32 is not verified, because that requires all bytes of the
  // member. `open` itself reads the local header. Throws as `read` does, and error(unsupported) for
  // a deflated member.
  task<std::shared_ptr<const byte_reader>> open(zip_member member) const;

  // The same by name. Throws error(invalid_argument) if there is no such member.
  task<std::shared_ptr<const byte_reader>> open(std::string name) const;

  // Returns a sample for each member that is not a directory; its key is the member's name.
  std::vector<sample> samples() const;

 private:
  struct state;
  friend task<zip_archive> open_zip(std::shared_ptr<const byte_reader> from, zip_options options);

  explicit zip_archive(std::shared_ptr<const state> opened) noexcept : state_(std::move(opened)) {}

  const zip_member& get(std::string_view name) const;
  static task<buffer> read_member(std::shared_ptr<const state> archive, zip_member member);
  static task<std::vector<buffer>> read_members(std::shared_ptr<const state> archive,
                                                std::vector<zip_member> members);
  static task<std::shared_ptr<const byte_reader>> open_member(std::shared_ptr<const state> archive,
                                                              zip_member member);

  std::shared_ptr<const state> state_;
};

// Opens an archive by reading its directory. Throws error(invalid_data) or error(unsupported)
// naming the archive. Memory: about three times the size of the directory.
task<zip_archive> open_zip(std::shared_ptr<const byte_reader> from, zip_options options = {});

// The same for a path or URL. Requires a runtime.
task<zip_archive> open_zip(std::string path, zip_options options = {});

// A function for map: returns the sample with the content of the member that its key names:
//
//   lade::from(archive.samples()) | lade::map(lade::io::read_zip(archive))
class read_zip {
 public:
  explicit read_zip(zip_archive archive) noexcept : archive_(std::move(archive)) {}

  // Throws as zip_archive::read does.
  task<sample> operator()(sample from) const;

 private:
  zip_archive archive_;
};

}  // namespace lade::io
