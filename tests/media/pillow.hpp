// Pillow as an oracle: runs pillow.py and reads the images that it prints.

#pragma once

#include "images.hpp"

#include <lade/tensor.hpp>

#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

namespace lade::media {

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
