// A file that others see when it is complete. Blocks.

#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace lade::detail {

// Written under a temporary name in the same directory, which the destructor removes unless the
// file has been published. One thread at a time.
//
// The temporary file is locked (flock) until it is published or removed, so the system unlocks it
// when its process is killed. A later new_file of the same path removes the temporary files that
// nobody has locked. Where there are no locks, none are removed. Locks of other machines may be
// invisible: a file of another machine, or of this one before it was started anew, must also not
// have been written to for a day.
class new_file {
 public:
  // Throws error that names `path`, as the others do.
  explicit new_file(std::string path);
  new_file(new_file&& other) noexcept;
  new_file(const new_file&) = delete;
  ~new_file();

  const std::string& path() const noexcept { return path_; }

  void write(std::span<const std::byte> bytes);

  // Closes the file and gives it its name, in place of one that has it.
  void publish();

 private:
  void open_temporary();

  std::string path_;
  std::string temporary_;  // empty if it is published
  int fd_ = -1;
};

}  // namespace lade::detail
