// Pillow as an oracle: runs pillow.py and reads the images that it prints.

#pragma once

#include <lade/tensor.hpp>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

namespace lade::media {

// The directory of the tests. __FILE__ may be relative to the build directory, where programs lie
// in a directory of their own.
inline std::filesystem::path tests_directory() {
  const auto build = std::filesystem::read_symlink("/proc/self/exe").parent_path().parent_path();
  return std::filesystem::canonical((build / __FILE__).parent_path().parent_path());
}

inline std::vector<std::filesystem::path> photos() {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(tests_directory() / "data/photos"))
    if (entry.path().extension() == ".jpg") files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

inline bool have_pillow() {
  return std::system("/usr/bin/python3 -c 'import PIL' 2>/dev/null") == 0;
}

// The images that a command of pillow.py prints, u8 [height, width, channels].
template <class... Arguments>
std::vector<tensor> pillow(const std::string& command, const Arguments&... arguments) {
  auto line =
      "/usr/bin/python3 " + (tests_directory() / "media/pillow.py").string() + " " + command;
  ((line += " " + std::string(arguments)), ...);
  std::FILE* output = popen(line.c_str(), "r");
  std::vector<tensor> images;
  for (int width, height, channels;
       std::fscanf(output, "%d %d %d", &width, &height, &channels) == 3;) {
    std::fgetc(output);
    tensor image(element_type::u8, {height, width, channels});
    const auto bytes = image.spec().bytes();
    if (std::fread(image.bytes(), 1, bytes, output) != bytes) break;
    images.push_back(image);
  }
  if (pclose(output) != 0) throw std::runtime_error("failed: " + line);
  return images;
}

}  // namespace lade::media
