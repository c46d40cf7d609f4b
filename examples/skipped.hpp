// What image_loader went on without.

#pragma once

#include <lade/failure.hpp>

#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <vector>

class skipped {
 public:
  // `log` is the file that has a line for every failure, or empty.
  explicit skipped(std::string log) : log_(std::move(log)) {}

  // Directories that could not be listed, as their errors say. Adds them to the log.
  void note_directories(const std::vector<std::string>& errors);

  // An image that could not be used, in one of the epochs. One thread at a time.
  void note(const lade::failure_record& failure);

  // How many there were for each reason, and the last ten names.
  void print() const;

 private:
  static constexpr std::size_t most_names = 10;

  void remember(const std::string& name);

  std::string log_;
  std::uint64_t times_ = 0;
  std::uint64_t directories_ = 0;
  std::set<std::string> images_;
  std::map<std::string, std::uint64_t> reasons_;
  std::deque<std::string> last_;  // names
};
