// Pillow as an oracle: runs pillow.py and reads the images that it prints.

#pragma once

#include "images.hpp"

#include <lade/tensor.hpp>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace lade::media {

inline bool have_pillow() {
  return std::system("/usr/bin/python3 -c 'import PIL' 2>/dev/null") == 0;
}

// What formats.py needs.
inline bool have_makers() {
  return std::system(
             "/usr/bin/python3 -c 'import numpy, tifffile, PIL' 2>/dev/null && "
             "command -v cjpeg tiffcp avifenc webpmux /usr/bin/convert > /dev/null") == 0;
}

// The next image of a file of raw ones, u8 [height, width, channels]; empty at its end.
inline tensor read_raw(std::FILE* from) {
  int width = 0, height = 0, channels = 0;
  if (std::fscanf(from, "%d %d %d", &width, &height, &channels) != 3) return tensor();
  std::fgetc(from);
  tensor image(element_type::u8, {height, width, channels});
  const auto bytes = image.spec().bytes();
  return std::fread(image.bytes(), 1, bytes, from) == bytes ? image : tensor();
}

// The images that a command of pillow.py prints.
inline std::vector<tensor> pillow(const std::string& command,
                                  const std::vector<std::string>& arguments) {
  auto line =
      "/usr/bin/python3 " + (tests_directory() / "media/pillow.py").string() + " " + command;
  for (const auto& argument : arguments) line += " " + argument;
  std::FILE* output = popen(line.c_str(), "r");
  std::vector<tensor> images;
  for (auto image = read_raw(output); image.rank() > 0; image = read_raw(output))
    images.push_back(image);
  if (pclose(output) != 0) throw std::runtime_error("failed: " + line);
  return images;
}

// The same for a command whose last arguments are files.
inline std::vector<tensor> pillow(const std::string& command, std::vector<std::string> arguments,
                                  const std::vector<std::filesystem::path>& files) {
  for (const auto& file : files) arguments.push_back(file.string());
  return pillow(command, arguments);
}

// A directory that goes when the test does.
class temporary_directory {
 public:
  temporary_directory() {
    std::string name = (std::filesystem::temp_directory_path() / "lade-XXXXXX").string();
    path_ = mkdtemp(name.data());
  }
  ~temporary_directory() { std::filesystem::remove_all(path_); }
  temporary_directory(const temporary_directory&) = delete;
  temporary_directory& operator=(const temporary_directory&) = delete;

  const std::filesystem::path& path() const { return path_; }

  // Writes a file and returns where it is.
  std::filesystem::path write(const std::string& name, const buffer& data) const {
    std::ofstream(path_ / name, std::ios::binary)
        .write(reinterpret_cast<const char*>(data.data()),
               static_cast<std::streamsize>(data.size()));
    return path_ / name;
  }

 private:
  std::filesystem::path path_;
};

}  // namespace lade::media
