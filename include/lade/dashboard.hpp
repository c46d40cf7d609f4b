// dashboard: shows a run on the terminal while it works.

#pragma once

#include <lade/stats.hpp>

#include <cstddef>
#include <memory>
#include <mutex>
#include <string>

namespace lade {

// A receiver for the reports of a run:
//
//   auto run = runtime.run(batches, {.report = {.every = 1s, .to = lade::dashboard()}});
//
// On a terminal, each report is drawn over the last one. It shows the stages of the interval, as
// many as fit, and the speed, the memory and the bottleneck. The final report covers the whole run
// and stays. Output of the program between two reports is drawn over too. Elsewhere, as in a log,
// each report is one line. Write errors are ignored.
//
// Copies draw in the same place, such as those of consecutive epochs. Several threads may call
// them.
class dashboard {
 public:
  explicit dashboard(int descriptor = 2) : descriptor_(descriptor) {}  // standard error

  void operator()(const run_report& report);

 private:
  struct drawing {
    std::mutex mutex;
    std::size_t lines = 0;  // lines on the terminal that the next report replaces
  };

  int descriptor_;
  std::shared_ptr<drawing> drawn_ = std::make_shared<drawing>();
};

// The text that a dashboard draws: at most `lines` lines of at most `columns` characters, each with
// a newline. If there are too many stages, the stages nearest to the source are counted instead of
// shown.
std::string render(const run_report& report, std::size_t columns,
                   std::size_t lines = ~std::size_t{0});

// The line that a dashboard writes if there is no terminal, without a newline.
std::string one_line(const run_report& report);

}  // namespace lade
