// The files and directories that a loader has skipped.

#pragma once

#include <lade/failure.hpp>

#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

class skipped {
 public:
  // `log` is the file that has a line for every failure, or empty. `one` and `many` are the names
  // of items.
  explicit skipped(std::string log, std::string one = "image", std::string many = "images")
      : log_(std::move(log)), one_(std::move(one)), many_(std::move(many)) {}

  // Directories that could not be listed, as their errors say. Adds them to the log.
  void record_directories(const std::vector<std::string>& errors);

  // An item that could not be used, in one of the epochs. One thread at a time.
  void record(const lade::failure_record& failure);

  // How many there were for each reason, and the last ten names.
  void print() const;

 private:
  static constexpr std::size_t most_names = 10;

  void remember(const std::string& name);

  std::string log_;
  std::string one_;
  std::string many_;
  std::uint64_t times_ = 0;
  std::uint64_t directories_ = 0;
  std::set<std::string> items_;
  std::map<std::string, std::uint64_t> reasons_;
  std::deque<std::string> last_;  // names
};
