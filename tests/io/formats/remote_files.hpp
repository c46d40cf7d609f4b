// Small files of every format, and what reads all of one by its path or URL.

#pragma once

#include <lade/runtime.hpp>

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace lade::test {

struct remote_file {
  std::string name;  // of the reader
  std::string path;  // what is opened, below the root
  std::map<std::string, std::string> files;

  // All that it holds as text, which is the same for the same bytes.
  std::function<std::string(runtime&, const std::string&)> read;
};

std::vector<remote_file> remote_files();

}  // namespace lade::test
