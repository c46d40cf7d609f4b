// A file in memory, page by page as it is touched.

#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace lade::io {

class mapped_file {
 public:
  // Blocks. Throws error that names the file.
  explicit mapped_file(std::string path);
  mapped_file(const mapped_file&) = delete;
  ~mapped_file();

  const std::string& path() const noexcept { return path_; }

  // Must not be written to.
  std::span<std::byte> bytes() const noexcept { return bytes_; }

 private:
  std::string path_;
  std::span<std::byte> bytes_;
};

}  // namespace lade::io
