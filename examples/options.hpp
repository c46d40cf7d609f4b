// The command line of image_loader.

#pragma once

#include <stdexcept>
#include <string>

struct options {
  std::string directory;
  unsigned batch = 256;
  unsigned size = 224;
  unsigned epochs = 1;
  unsigned threads = 0;  // 0: one for each CPU
  unsigned read_ahead = 64;
  unsigned seed = 0;
  bool train = true;
  bool fast = false;
  bool floats = false;
  bool skip_bad = false;
  bool slowest = false;
  bool help = false;
  std::string contact_sheet;  // a file's name, or none
  std::string trace;          // the same
  std::string failure_log;    // the same
  std::string reactor = "automatic";
};

// A command line that makes no sense. what() names the word that is to blame.
class usage_error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

options parse_options(int argc, char** argv);

// What --help prints.
std::string help_text();
