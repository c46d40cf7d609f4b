// A file that others see when it is complete. Blocks.

#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace lade::detail {

// Written under a temporary name in the same directory, which the destructor removes unless the
// file has been published. One thread at a time.
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
  std::string path_;
  std::string temporary_;  // empty if it is published
  int fd_;
};

}  // namespace lade::detail
