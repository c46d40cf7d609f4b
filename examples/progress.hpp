// A progress bar: a line at the bottom of the terminal that is redrawn.

#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

class progress {
 public:
  using clock = std::chrono::steady_clock;

  struct status {
    std::string what;  // "epoch 2 of 3"; may be empty
    std::string unit = "images";
    std::uint64_t items = 0;
    std::uint64_t total = 0;  // 0: unknown
    std::uint64_t bytes = 0;
  };

  // Calls `look` ten times a second, on a dedicated thread, and draws its result if standard error
  // is a terminal. The destructor removes the line, also during an exception.
  explicit progress(std::function<status()> look);

 private:
  struct sample {
    clock::time_point time;
    std::uint64_t items;
    std::uint64_t bytes;
  };

  void redraw(const std::stop_token& stop);
  void draw(const status& now);
  std::string rewind(std::size_t columns) const;
  void remember(const status& now);
  std::vector<std::string> figures(const status& now) const;

  std::function<status()> look_;
  std::deque<sample> recent_;  // the last seconds: the speed is that of now, not of all the time
  std::size_t drawn_ = 0;      // characters on the terminal
  std::mutex mutex_;
  std::condition_variable_any tick_;
  std::jthread thread_;  // ends before the members that it uses
};
