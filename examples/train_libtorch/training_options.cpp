#include "training_options.hpp"

#include <lade/error.hpp>

#include <algorithm>
#include <charconv>
#include <sstream>
#include <string_view>
#include <system_error>
#include <thread>

const char* const training_usage = R"(usage: train_libtorch DATA RUN [OPTION...]

Trains a network on the images in DATA/train/CLASS, and tests it on those in DATA/test/CLASS after
each epoch. Keeps a log and a checkpoint in RUN. Killed at any time and started again, it resumes
from the checkpoint, with the same losses.

  --draw N        first draw DATA: N images of each of ten shapes, and a sixth as many to test
  --epochs N      8 if not given
  --batch N       images in a batch; 32 if not given
  --save-every N  steps between checkpoints; 50 if not given
  --seed N        of the data set, its order, crops, and weights; 0 if not given
  --threads N     of libtorch on the CPU; one fewer than there are CPUs if not given
  --device NAME   cpu or cuda; cpu if not given
)";

namespace {

std::uint64_t number(std::string_view name, std::string_view text, std::uint64_t least) {
  std::uint64_t value = 0;
  auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc() || end != text.data() + text.size() || value < least ||
      value > 1'000'000)
    throw usage_error(std::string(name) + " takes a number from " + std::to_string(least) +
                      " to 1000000, not '" + std::string(text) + "'");
  return value;
}

void set_option(training_options& all, std::string_view name, std::string_view value) {
  if (name == "--draw")
    all.draw = number(name, value, 1);
  else if (name == "--epochs")
    all.epochs = number(name, value, 1);
  else if (name == "--batch")
    all.batch = number(name, value, 2);  // batch normalisation needs two
  else if (name == "--save-every")
    all.save_every = number(name, value, 1);
  else if (name == "--seed")
    all.seed = number(name, value, 0);
  else if (name == "--threads")
    all.threads = number(name, value, 1);
  else if (name == "--device" && (value == "cpu" || value == "cuda"))
    all.device = value;
  else if (name == "--device")
    throw usage_error("--device takes cpu or cuda, not '" + std::string(value) + "'");
  else
    throw usage_error("no option '" + std::string(name) + "'");
}

}  // namespace

std::string training_options::describe() const {
  std::ostringstream text;
  text << "batch " << batch << "\nseed " << seed << "\nthreads " << threads << "\ndevice " << device
       << '\n';
  return text.str();
}

training_options parse_training_options(int argc, char** argv) {
  if (argc < 3) throw usage_error("DATA and RUN are needed");
  training_options all;
  all.data = argv[1];
  all.run = argv[2];
  for (int i = 3; i < argc; i += 2) {
    if (i + 1 == argc) throw usage_error(std::string(argv[i]) + " takes a value");
    set_option(all, argv[i], argv[i + 1]);
  }
  if (all.threads == 0) all.threads = std::max(2U, std::thread::hardware_concurrency()) - 1;
  return all;
}

void require_same_options(const std::string& checkpoint, const std::string& saved,
                          const std::string& present) {
  std::istringstream before(saved);
  std::istringstream now(present);
  std::string was;
  std::string is;
  while (std::getline(before, was) && std::getline(now, is))
    if (was != is)
      throw lade::error(lade::errc::invalid_argument, "resume from " + checkpoint,
                        "it was made with " + was + "; this run has " + is);
}
