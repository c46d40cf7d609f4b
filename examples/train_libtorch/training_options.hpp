// The command line of train_libtorch.

#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

struct training_options {
  std::string data;        // has train/CLASS/... and test/CLASS/...
  std::string run;         // gets the log and the checkpoint
  std::uint64_t draw = 0;  // images of each class to draw first; 0: none
  std::uint64_t epochs = 8;
  std::uint64_t batch = 32;       // images in a batch
  std::uint64_t save_every = 50;  // steps
  std::uint64_t seed = 0;
  std::uint64_t threads = 0;  // of libtorch on the CPU
  std::string device = "cpu";

  // The options that affect the losses, a line each: "batch 32".
  std::string describe() const;
};

extern const char* const training_usage;

// An invalid command line. what() names the invalid word.
class usage_error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Leaves `threads` at one CPU fewer than there are, and at least 1, if it is not set: lade decodes
// on the others.
training_options parse_training_options(int argc, char** argv);

// Throws lade::error that names the first difference between the options of a checkpoint and of
// this run, as describe() returns them.
void require_same_options(const std::string& checkpoint, const std::string& saved,
                          const std::string& present);
