// metrics: statistics in the text format of Prometheus.

#pragma once

#include <lade/process.hpp>
#include <lade/stats.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lade {

// Labels that distinguish the samples of a metric: {{"run", "train"}, {"rank", "3"}}.
using metric_labels = std::vector<std::pair<std::string, std::string>>;

enum class metric_type : std::uint8_t { counter, gauge, summary };

// Collects samples and writes them in the text format 0.0.4 of Prometheus. Samples of one metric
// are written together, in any order of adding them. Times are in seconds, sizes in bytes. Names of
// counters end in _total.
//
//   metrics all;
//   all.add(run.statistics(), {{"run", "train"}});
//   all.add("loss", metric_type::gauge, "Of the last step.", loss);
//
// Throws error(invalid_argument) for names and labels that Prometheus would refuse, and if a name
// is added again with another type.
class metrics {
 public:
  // Adds lade_run_... and, for each stage, lade_stage_...{stage="name"}.
  void add(const run_statistics& run, const metric_labels& labels = {});

  // Adds process_..., as far as the values are known.
  void add(const process_statistics& process, const metric_labels& labels = {});

  // Adds a custom sample.
  void add(std::string_view name, metric_type type, std::string_view help, double value,
           const metric_labels& labels = {});

  std::string text() const;

 private:
  struct family {
    std::string name;
    metric_type type;
    std::string help;
    std::string samples;
  };

  family& of(std::string_view name, metric_type type, std::string_view help);
  void add_stage(const stage_statistics& stage, const metric_labels& labels);
  void add_durations(const stage_statistics& stage, const metric_labels& labels);

  std::vector<family> families_;
};

// The text for one run or one process.
std::string to_prometheus(const run_statistics& run, const metric_labels& labels = {});
std::string to_prometheus(const process_statistics& process, const metric_labels& labels = {});

}  // namespace lade
