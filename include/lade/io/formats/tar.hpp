// Tar archives, read member by member from a stream of bytes.

#pragma once

#include <lade/async_generator.hpp>
#include <lade/buffer.hpp>
#include <lade/byte_reader.hpp>
#include <lade/error.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace lade::io {

// A regular file in an archive. Copies share the content.
class tar_member {
 public:
  using time = std::chrono::sys_time<std::chrono::nanoseconds>;

  tar_member(std::string name, buffer content, std::uint64_t offset, time modified,
             std::uint32_t mode)
      : name_(std::move(name)),
        content_(std::move(content)),
        offset_(offset),
        modified_(modified),
        mode_(mode) {}

  const std::string& name() const noexcept { return name_; }  // the bytes in the archive
  const buffer& content() const noexcept { return content_; }
  std::uint64_t offset() const noexcept { return offset_; }  // of the content, in the archive
  time modified() const noexcept { return modified_; }       // clamped to 1678..2262
  std::uint32_t mode() const noexcept { return mode_; }      // permission bits

 private:
  std::string name_;
  buffer content_;
  std::uint64_t offset_;
  time modified_;
  std::uint32_t mode_;
};

// The reaction to damage in an archive: a wrong checksum, a truncated archive, a refused member
// (sparse, too large, of an unknown type).
enum class on_damage : std::uint8_t {
  fail,         // throw
  skip_member,  // report, and continue at the next header with a valid checksum
  end_archive,  // report, and end the archive at the damage
};

// Collects reports of damage. Any thread may use it.
class damage_log {
 public:
  static constexpr std::size_t max_reports = 1000;

  void add(const error& what);

  std::uint64_t count() const;               // number of all reports
  std::vector<std::string> reports() const;  // the texts of the first max_reports

 private:
  mutable std::mutex mutex_;
  std::uint64_t count_ = 0;
  std::vector<std::string> reports_;
};

struct tar_options {
  // Maximum size of a member in bytes. A larger member is refused before it is read.
  std::uint64_t max_member_bytes = std::uint64_t{4} << 30;

  io::on_damage on_damage = io::on_damage::fail;

  // Receives the reports of damage; required unless `on_damage` is `fail`. Must outlive the
  // generators, which may share it.
  damage_log* log = nullptr;

  // Whether zero blocks do not end the archive. Reads concatenated archives.
  bool ignore_zeros = false;
};

// Yields the regular files in an archive, in its order:
//
//   auto members = lade::io::tar_members(lade::io::stream("a.tar"), "a.tar");
//   while (auto* member = co_await members.next()) use(member->name(), member->content());
//
// Formats: ustar, pax (path, size, mtime), GNU tar (long names, base 256) and Unix V7. Directories,
// devices and FIFOs are skipped. Sparse files and links count as damage, because their content does
// not follow their header; the error names them. `tar --dereference --hard-dereference` archives
// the content of links.
//
// Memory. The content of a member is a view of the stream's buffer if it lies in one buffer; the
// member keeps that buffer alive. Otherwise it is a copy in memory of the caller's pool. For a size
// that only a header claims, at most 16 MiB are allocated, or twice the bytes that follow.
//
// End. Two zero blocks end an archive, and only zeros may follow. The stream is read to its end, so
// the checksums of a compressed archive are verified.
//
// Errors. `name`: the name of the archive in errors. `options.on_damage` decides whether damage
// throws error(invalid_data, unsupported or limit_exceeded), which names the archive, the member
// and the offset. Other errors of the stream, such as a failed disk, are always thrown. Throws
// error(invalid_argument) for a policy that reports, without a log.
//
// After a damaged header, members are recognised by valid headers at multiples of 512 bytes. In an
// archive of archives, these may be headers of an inner archive. A member whose long name may have
// been lost is skipped.
async_generator<tar_member> tar_members(async_generator<buffer> archive, std::string name,
                                        tar_options options = {});

// The same for a reader, which must not be null: `co_await lade::io::open_reader("a.tar")`. Errors
// contain the reader's name. Large members are read directly into their memory, and skipped members
// are not read. The archive must not be compressed.
async_generator<tar_member> tar_members(std::shared_ptr<const byte_reader> archive,
                                        tar_options options = {});

}  // namespace lade::io
