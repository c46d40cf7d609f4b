// A run on the terminal, while it lives.

#pragma once

#include <lade/stats.hpp>

#include <cstddef>
#include <memory>
#include <mutex>
#include <string>

namespace lade {

// What to give a run to report to:
//
//   auto run = runtime.run(batches, {.report = {.every = 1s, .to = lade::dashboard()}});
//
// On a terminal each report is drawn over the last one: the stages of the interval, as many as
// there is room for, speed, memory and what limits the run. The last one, which stays, is of the
// whole run. What the program prints in between is drawn over too. Elsewhere, as in a log, each
// report is one line. What cannot be written is lost without a word.
//
// Copies draw in the same place, such as those of epochs that follow each other; they may be called
// by several threads.
class dashboard {
 public:
  explicit dashboard(int descriptor = 2) : descriptor_(descriptor) {}  // standard error

  void operator()(const run_report& report);

 private:
  struct drawing {
    std::mutex mutex;
    std::size_t lines = 0;  // that stand on the terminal, to be drawn over
  };

  int descriptor_;
  std::shared_ptr<drawing> drawn_ = std::make_shared<drawing>();
};

// What a dashboard draws: so many lines at most, of so many characters at most, each with its end.
// Where there are more stages, those nearest to the source are left out and counted.
std::string render(const run_report& report, std::size_t columns,
                   std::size_t lines = ~std::size_t{0});

// What it writes where there is no terminal, without an end.
std::string one_line(const run_report& report);

}  // namespace lade
