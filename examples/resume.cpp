// A training that may be killed at any time and resumes.
//
//   resume CHECKPOINT LOG [CONCURRENCY]
//
// "Trains" on shuffled numbers: writes each batch to LOG, a line each. After every third step it
// saves its state to CHECKPOINT. When it is started again, it resumes from there, with any
// concurrency.

#include <lade/lade.hpp>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <vector>

#include "training_log.hpp"

using batch = std::vector<std::uint64_t>;

static std::string line_of(const batch& numbers) {
  std::string line;
  for (auto number : numbers) line += std::to_string(number) + ' ';
  return line;
}

static std::uint64_t number(std::uint64_t index) { return index; }
static std::uint64_t square(std::uint64_t i) { return i * i; }

static void run(const std::string& checkpoint, const std::string& log, unsigned concurrency) {
  training_log training(checkpoint, log);
  lade::runtime runtime({.threads = concurrency});
  auto batches = lade::from_index(10'000, number, {.identity = "numbers below 10,000"}) |
                 lade::shuffle({.seed = 7}) | lade::map(square, {.concurrency = concurrency}) |
                 lade::batch(16);

  for (auto epoch = training.epoch(); epoch < 2; ++epoch) {
    auto steps = runtime.run(
        batches, {.epoch = epoch, .state = training.take_state(), .require_state = true});
    for (std::uint64_t step = 1; auto& numbers : steps) {
      training.step(line_of(numbers));
      if (step++ % 3 == 0) training.save(steps.state());
    }
  }
}

int main(int argc, char** argv) {
  int concurrency = argc == 4 ? std::atoi(argv[3]) : 4;
  if (argc < 3 || argc > 4 || concurrency < 1) {
    std::fprintf(stderr, "usage: resume CHECKPOINT LOG [CONCURRENCY]\n");
    return 2;
  }
  try {
    run(argv[1], argv[2], static_cast<unsigned>(concurrency));
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "resume: %s\n", failure.what());
    return 1;
  }
}
