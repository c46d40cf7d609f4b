// Groups of numbers: the items of random pipelines in tests of states. Sources and stages of such
// pipelines.

#pragma once

#include <lade/failure.hpp>
#include <lade/from.hpp>
#include <lade/io/directory.hpp>
#include <lade/io/file.hpp>
#include <lade/map.hpp>
#include <lade/pipeline.hpp>
#include <lade/sample.hpp>
#include <lade/sleep.hpp>
#include <lade/task.hpp>

#include "later.hpp"
#include "temp_dir.hpp"

#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

namespace lade::test {

using ints = std::vector<int>;

inline ints joined(const std::vector<ints>& groups) {
  ints all;
  for (auto& each : groups) all.insert(all.end(), each.begin(), each.end());
  return all;
}

inline ints group_of(std::uint64_t i) { return {static_cast<int>(i) + 1}; }
inline ints same(ints group) { return group; }

template <int Divisor>
task<ints> hang_on_multiples(ints group) {
  if (group.front() % Divisor == 0) co_await sleep(std::chrono::hours(10));
  co_return group;
}

// Drops the multiples of a number by a timeout of their calls. Other numbers have 25 attempts, so
// one call returns in time also on a busy machine.
template <int Divisor>
pipeline<ints> without_multiples(const pipeline<ints>& in, map_options how) {
  how.timeout = std::chrono::milliseconds(4);
  how.retry = {.attempts = 25, .pause = {}};
  how.on_error = on_error::skip;
  return in | map(hang_on_multiples<Divisor>, how);
}

inline ints refuse_fives(ints group) {
  if (group.front() % 5 == 0) throw std::runtime_error("five");
  return group;
}

inline ints number_in(const sample& file) { return {std::stoi(std::string(file.data().text()))}; }

// Files that contain the numbers from 1 on, in three directories.
class numbered_files {
 public:
  explicit numbered_files(int count) {
    for (int number = 1; number <= count; ++number)
      files_.write(name_of(number), std::to_string(number));
  }

  pipeline<sample> listed() const { return from(io::files(files_.path().string())); }

  // Replaces each number by the number that it reads from the file of that name.
  pipeline<ints> read_again(const pipeline<ints>& in, const map_options& how) const {
    auto file_of = [directory = files_.path()](const ints& group) {
      return sample(directory / name_of(group.front()));
    };
    return in | map(file_of) | map(io::read, how) | map(number_in);
  }

 private:
  static std::string name_of(int number) {
    return std::to_string(number % 3) + "/" + std::to_string(number);
  }

  testing_support::temp_dir files_;
};

}  // namespace lade::test
