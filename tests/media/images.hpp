// The photos that tests decode, and how images are compared.

#pragma once

#include <lade/sample.hpp>
#include <lade/tensor.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <vector>

namespace lade::media {

// The directory of the tests. __FILE__ may be relative to the build directory, in or below which
// the programs lie.
inline std::filesystem::path tests_directory() {
  auto from = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  while (!std::filesystem::exists(from / __FILE__) && from != from.root_path())
    from = from.parent_path();
  return std::filesystem::canonical(from / __FILE__).parent_path().parent_path();
}

inline std::vector<std::filesystem::path> files_in(const std::filesystem::path& directory) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(directory))
    files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

inline std::vector<std::filesystem::path> photos() {
  auto files = files_in(tests_directory() / "data/photos");
  std::erase_if(files, [](const auto& file) { return file.extension() != ".jpg"; });
  return files;
}

inline sample load(const std::filesystem::path& path) {
  buffer data(std::filesystem::file_size(path));
  std::ifstream(path, std::ios::binary)
      .read(reinterpret_cast<char*>(data.data()), static_cast<std::streamsize>(data.size()));
  return sample(path.filename()).with_data(data);
}

// The largest difference between two u8 tensors; 256 when their shapes differ.
inline int difference(const tensor& a, const tensor& b) {
  if (a.spec() != b.spec()) return 256;
  const auto *one = a.data<std::uint8_t>(), *other = b.data<std::uint8_t>();
  const auto count = a.spec().elements();
  if (std::memcmp(one, other, count) == 0) return 0;  // most are, and tests are not optimised
  int largest = 0;
  for (std::size_t i = 0; i < count; ++i) largest = std::max(largest, std::abs(one[i] - other[i]));
  return largest;
}

}  // namespace lade::media
