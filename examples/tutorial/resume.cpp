// A training that may be killed at any time and resumes from its last checkpoint.

#include <lade/lade.hpp>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <string>
#include <thread>

int main(int count, char** arguments) {
  if (count != 2) return 2;
  const std::string path = arguments[1];
  std::uint64_t step = 0;
  std::uint64_t model = 0;  // a sum instead of weights
  lade::run_options options{.require_state = true};
  std::ifstream file(path);
  if (std::string data; file >> step >> model >> std::ws && std::getline(file, data))
    options.state = lade::state_from_json(data);
  std::cout << "begin after step " << step << "\n";

  lade::runtime runtime;
  auto batches = lade::from_index(100, std::identity(), {.identity = "numbers below 100"}) |
                 lade::shuffle({.seed = 7}) | lade::batch(8);
  auto run = runtime.run(batches, options);
  for (auto& batch : run) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // training takes time
    for (auto number : batch) model = (model * 31 + number) % 1'000'003;
    std::cout << "step " << ++step << ": model " << model << std::endl;
    if (step % 5 != 0) continue;
    std::ofstream(path + ".new") << step << ' ' << model << '\n' << to_json(run.state()) << '\n';
    std::filesystem::rename(path + ".new", path);
  }
}
