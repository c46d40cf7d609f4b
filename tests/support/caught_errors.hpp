// Redirects standard error to a file.

#pragma once

#include <fstream>
#include <iterator>
#include <string>

#include <fcntl.h>
#include <unistd.h>

#include "temp_dir.hpp"

namespace lade::testing_support {

// While the object lives, the process writes standard error to a file.
class caught_errors {
 public:
  caught_errors() : kept_(dup(2)) {
    int file = open(path().c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    dup2(file, 2);
    close(file);
  }
  caught_errors(const caught_errors&) = delete;
  ~caught_errors() {
    dup2(kept_, 2);
    close(kept_);
  }

  std::string text() const {
    std::ifstream file(path());
    return {std::istreambuf_iterator<char>(file), {}};
  }

 private:
  std::string path() const { return dir_ / "errors"; }

  temp_dir dir_;
  int kept_;
};

}  // namespace lade::testing_support
