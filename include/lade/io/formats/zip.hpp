// ZIP archives: their members by name and by number, read in any order.
//
// Source of the format: PKWARE's APPNOTE.TXT 6.3.10, with zip64.
//
// - Members are stored or deflated. Other methods, and encrypted members, are listed, and refused
//   as unsupported when they are read. Archives of several disks are refused.
// - The central directory is believed, and each member's local header must agree with it. The
//   CRC-32 of each member that is read as a whole is checked.
// - Two members that share bytes are invalid, so a small archive cannot pretend to hold more than
//   1032 times its size, the most that deflate can do.
// - Bytes in front of the archive, such as a program that extracts it, are allowed.
// - Names are the bytes of the archive: UTF-8 if has_utf8_name() says so, otherwise usually code
//   page 437. They may be any text, also "../x": they are not meant for opening files.

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

// How a member is compressed. There are other numbers, which are refused.
enum class zip_method : std::uint16_t { stored = 0, deflated = 8 };

// What the central directory says of a member.
class zip_member {
 public:
  struct numbers {
    std::uint64_t header_offset = 0;  // of the local header, from the begin of the file
    std::uint64_t end = 0;            // where the next member or the directory begins
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
  // The most bytes that a compressed member may become. A larger one is refused with
  // errc::limit_exceeded before memory is allocated. Stored members have no limit: they are no
  // larger than the archive.
  std::uint64_t max_bytes = std::uint64_t{1} << 30;
};

// An open archive. A small value: copies share the directory and the reader, and keep both alive.
// Any thread may use it, and any number of members may be read at a time.
class zip_archive {
 public:
  // What errors call it.
  const std::string& name() const noexcept;

  // All members in the order of the directory, directories included.
  std::span<const zip_member> members() const noexcept;

  // The member of that name, the last if there are several, or null. A binary search.
  const zip_member* find(std::string_view name) const noexcept;

  // The content of a member: a view of the archive's memory if the member is stored and the archive
  // is in memory, otherwise memory of the caller's pool. Needs a runtime if the reader needs one.
  // Throws error(invalid_data), error(unsupported) or error(limit_exceeded) naming the archive and
  // the member.
  task<buffer> read(zip_member member) const;

  // The same by name. Throws error(invalid_argument) if there is no such member.
  task<buffer> read(std::string name) const;

  // The contents of several members, in their order. Members that are near each other in the
  // archive are read at once, and reads run in parallel, as read_ranges does: for an archive in a
  // store. Stored members that were read at once share their memory. Throws as read does, for the
  // first of them that fails.
  task<std::vector<buffer>> read(std::vector<zip_member> members) const;

  // Random access to a member that is stored: to a tar archive, an array or a video in the archive.
  // The reader keeps the archive's reader alive, is called "ARCHIVE/MEMBER", and reads nothing but
  // what it is asked for. The member's CRC-32 is not compared, which takes all of its bytes. Reads
  // the local header. Throws as read does, and error(unsupported) for a member that is deflated.
  task<std::shared_ptr<const byte_reader>> open(zip_member member) const;

  // The same by name. Throws error(invalid_argument) if there is no such member.
  task<std::shared_ptr<const byte_reader>> open(std::string name) const;

  // A sample for each member that is no directory; its key is the member's name.
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

// Reads the directory of an archive. Throws error(invalid_data) or error(unsupported) naming the
// archive. Memory: that of the directory, about three times.
task<zip_archive> open_zip(std::shared_ptr<const byte_reader> from, zip_options options = {});

// The same of a file. Requires a runtime.
task<zip_archive> open_zip(std::string path, zip_options options = {});

// A stage's function that gives samples the content of the member that is their key:
//
//   lade::from(archive.samples()) | lade::map(lade::io::read_zip(archive))
class read_zip {
 public:
  explicit read_zip(zip_archive archive) noexcept : archive_(std::move(archive)) {}

  // Throws what zip_archive::read throws.
  task<sample> operator()(sample from) const;

 private:
  zip_archive archive_;
};

}  // namespace lade::io
