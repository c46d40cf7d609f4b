#include <lade/detail/observer.hpp>
#include <lade/detail/operation.hpp>
#include <lade/task.hpp>
#include <lade/this_context.hpp>

#include <algorithm>
#include <utility>

namespace lade::detail {

static task<> report_regularly(std::shared_ptr<run_state> run) {
  auto& wanted = run->options().report;
  run_report report;
  auto due = clock::now();
  for (bool over = false; !over;) {
    due = std::max(due + wanted.every, clock::now());
    over = !co_await sleep_until(due);
    auto now = run->statistics();
    report.interval = now - report.total;
    report.total = std::move(now);
    report.process = read_process_statistics();
    wanted.to(report);
  }
}

// A failure asks the children of a run to stop before the consumer has seen it: hence a stop of
// the observer's own.
static task<> observe_until(std::stop_token over, std::shared_ptr<run_state> run) {
  auto surroundings = run->surroundings(std::move(over));
  co_await under(surroundings, report_regularly(run));
}

observer::observer(const std::shared_ptr<run_state>& run) {
  if (run->options().report.to) run->children().start(observe_until(over_.get_token(), run));
}

}  // namespace lade::detail
