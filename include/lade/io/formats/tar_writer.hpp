// A writer of tar archives.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace lade::io {

struct tar_writer_options {
  std::int64_t modified = 0;  // time of all members, seconds since 1970, 0 to 2^33 - 1
  std::uint32_t mode = 0644;  // mode of all members
};

// Writes an archive of regular files in the ustar format, with pax headers for names and sizes that
// do not fit. The output is deterministic: owners are 0, and times are those of the options.
//
// The file appears atomically: until finish() returns, it has a temporary name beside `path`. The
// destructor removes an unfinished file. The file of a killed process is removed by the next
// tar_writer for the same path. Exceptions: a file that was written to less than a day ago, on
// another machine or before the last start of this one; and file systems without locks. The file of
// a living writer is never removed.
//
// Functions block, so call them on the CPU pool. They throw `error` naming the archive. One thread
// at a time. Contents are not synced to the disk.
class tar_writer {
 public:
  explicit tar_writer(std::string path, const tar_writer_options& options = {});
  tar_writer(tar_writer&&) noexcept;
  ~tar_writer();

  // Adds a file. Throws error(invalid_argument) for a name that is empty, ends with a slash or has
  // a zero byte, and after finish().
  void add(std::string_view name, std::span<const std::byte> content);
  void add(std::string_view name, std::string_view content);

  // Returns the size in bytes that the archive has if finish() follows now.
  std::uint64_t bytes() const noexcept;

  // Writes the end of the archive and renames the file to its path, where it replaces an existing
  // file. Call it once.
  void finish();

 private:
  struct state;
  std::unique_ptr<state> state_;
};

// Returns the bytes that a file with this name and size occupies in an archive.
std::uint64_t tar_bytes_of(std::string_view name, std::uint64_t content_bytes);

}  // namespace lade::io
