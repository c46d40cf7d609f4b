// Writes a file that becomes visible when it is complete. Blocks.

#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace lade::detail {

// A file with a temporary name in the same directory. The destructor removes it unless it was
// published. One thread at a time.
//
// The temporary file is locked (flock) until it is published or removed, so the system unlocks it
// if the process is killed. A later new_file of the same path removes unlocked temporary files;
// none if the file system has no locks. Locks of other machines may be invisible. So a file of
// another machine, or of an earlier boot, is removed only if it was not written to for a day.
class new_file {
 public:
  // Throws error naming `path`, like the other functions.
  explicit new_file(std::string path);
  new_file(new_file&& other) noexcept;
  new_file(const new_file&) = delete;
  ~new_file();

  const std::string& path() const noexcept { return path_; }

  void write(std::span<const std::byte> bytes);

  // Closes the file and renames it to its path. Replaces an existing file.
  void publish();

 private:
  void open_temporary();

  std::string path_;
  std::string temporary_;  // empty once published
  int fd_ = -1;
};

}  // namespace lade::detail
