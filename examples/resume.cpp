// A training that may be killed at any time and goes on where it was.
//
//   resume CHECKPOINT LOG [CONCURRENCY]
//
// "Trains" on shuffled numbers: writes each batch to LOG, a line each. After every third step it
// saves where it is to CHECKPOINT, from which it goes on when it is started again, at any
// concurrency.

#include <lade/lade.hpp>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

using batch = std::vector<std::uint64_t>;

// What belongs together is saved together: the model, here the length of the log, and the state of
// the data. A file is replaced as a whole, so that a checkpoint is either the old or the new one.
static void save(const std::string& path, std::uintmax_t model, const lade::state& data) {
  auto fresh = path + ".new";
  std::ofstream(fresh) << model << '\n' << to_json(data) << '\n';
  std::filesystem::rename(fresh, path);
}

static std::optional<lade::state> load(const std::string& path, std::uintmax_t& model) {
  std::ifstream file(path);
  std::string data;
  if (!(file >> model >> std::ws) || !std::getline(file, data)) return std::nullopt;
  return lade::state_from_json(data);
}

static void train(std::ofstream& log, const batch& numbers) {
  for (auto number : numbers) log << number << ' ';
  log << std::endl;
}

static std::uint64_t number(std::uint64_t index) { return index; }
static std::uint64_t square(std::uint64_t i) { return i * i; }

static void run(const std::string& checkpoint, const std::string& log_path, unsigned concurrency) {
  std::uintmax_t model = 0;
  auto state = load(checkpoint, model);
  std::ofstream(log_path, std::ios::app).flush();
  std::filesystem::resize_file(log_path, model);  // what came after the checkpoint is forgotten
  std::ofstream log(log_path, std::ios::app);

  lade::runtime runtime({.threads = concurrency});
  auto batches = lade::from_index(10'000, number, {.identity = "numbers below 10,000"}) |
                 lade::shuffle({.seed = 7}) | lade::map(square, {.concurrency = concurrency}) |
                 lade::batch(16);

  for (std::uint64_t epoch = state ? state->epoch : 0; epoch < 2; ++epoch) {
    auto steps = runtime.run(batches, {.epoch = epoch, .state = state, .require_state = true});
    state.reset();
    for (std::uint64_t step = 1; auto& numbers : steps) {
      train(log, numbers);
      if (step++ % 3 == 0) save(checkpoint, std::filesystem::file_size(log_path), steps.state());
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
