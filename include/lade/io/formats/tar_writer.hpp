// Writes tar archives.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace lade::io {

struct tar_writer_options {
  std::int64_t modified = 0;  // of all members, in seconds since 1970; not negative
  std::uint32_t mode = 0644;  // of all members
};

// Writes an archive of regular files in the ustar format, with pax headers for names and sizes that
// do not fit. The same members give the same bytes: owners are 0, and times are those of the
// options.
//
// The file appears under its name when finish() has returned; until then it has a temporary name
// beside it, and the destructor removes it. That of a process that was killed is removed by the
// next tar_writer of the same name, unless it was written on another machine less than a day ago,
// or where the file system has no locks. A living writer's file is never removed. Functions block,
// so they belong on the CPU pool. They throw `error` naming the archive. One thread at a time.
// Contents are not synced to the disk.
class tar_writer {
 public:
  explicit tar_writer(std::string path, const tar_writer_options& options = {});
  tar_writer(tar_writer&&) noexcept;
  ~tar_writer();

  // Adds a file. Throws error(invalid_argument) for a name that is empty, ends with a slash or has
  // a zero byte, and after finish().
  void add(std::string_view name, std::span<const std::byte> content);
  void add(std::string_view name, std::string_view content);

  // The size of the archive if it ended here, with its end.
  std::uint64_t bytes() const noexcept;

  // Writes the end, and gives the file its name, in place of one that has it. Once.
  void finish();

 private:
  struct state;
  std::unique_ptr<state> state_;
};

// How many bytes a file of that name and size takes in an archive.
std::uint64_t tar_bytes_of(std::string_view name, std::uint64_t content_bytes);

}  // namespace lade::io
