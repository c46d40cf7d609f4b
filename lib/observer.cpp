#include <lade/detail/continue_on.hpp>
#include <lade/detail/later.hpp>
#include <lade/detail/observer.hpp>
#include <lade/detail/operation.hpp>
#include <lade/task.hpp>
#include <lade/this_context.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>

namespace lade::detail {

static task<> report_regularly(std::shared_ptr<run_state> run) {
  auto& wanted = run->options().report;
  run_report report;
  auto due = clock::now();
  for (bool over = false; !over;) {
    due = std::max(later(due, wanted.every), clock::now());
    over = !co_await sleep_until(due);
    auto now = run->statistics();
    report.last = over;
    report.interval = now - report.total;
    report.total = std::move(now);
    report.process = read_process_statistics({.pss = wanted.pss});
    wanted.to(report);
  }
}

static void tell_stall(const run_state& run, clock::duration waited) {
  auto seconds = std::chrono::duration_cast<std::chrono::seconds>(waited).count();
  auto text = "lade: the consumer has waited for an item for " + std::to_string(seconds) + " s.\n" +
              run.overview();
  if (run.options().stall.to)
    run.options().stall.to(text);
  else
    std::fputs(text.c_str(), stderr);
}

static task<> report_stalls(std::shared_ptr<run_state> run) {
  auto after = run->options().stall.after;
  std::uint64_t delivered = 0;
  clock::duration waited_before{};
  bool told = false;
  while (true) {
    bool slept = co_await sleep_until(later(clock::now(), after / 4));
    if (!slept) co_return;
    auto waited = run->sink.starving.until(clock::now());
    if (auto now = run->sink.out.load(); now != delivered) {
      delivered = now;
      waited_before = waited;
      told = false;
    }
    if (told || waited - waited_before < after) continue;
    told = true;
    tell_stall(*run, waited - waited_before);
  }
}

// A failure asks the children of a run to stop before the consumer has seen it: hence a stop of
// the observer's own.
static task<> observe_until(std::stop_token over, std::shared_ptr<run_state> run, executor& home,
                            task<> observing) {
  auto surroundings = run->surroundings(std::move(over));
  surroundings.home = &home;
  co_await continue_on(home);
  co_await under(surroundings, std::move(observing));
}

static void begin_observing(const std::shared_ptr<run_state>& run, executor& home,
                            task<> observing) {
  run->children().start(observe_until(run->over.get_token(), run, home, std::move(observing)));
}

void begin_telling(const std::shared_ptr<run_state>& run) {
  auto& where = run->runtime();
  if (run->options().report.to) begin_observing(run, where.pool(), report_regularly(run));
  if (run->watches_stalls()) begin_observing(run, where.reactor(0), report_stalls(run));
}

static task<> tune_regularly(std::shared_ptr<run_state> run) {
  while (true) {
    bool slept = co_await sleep_until(clock::now() + tuned_stages::interval);
    if (!slept) co_return;
    run->tuned().look(clock::now());
  }
}

void begin_tuning(const std::shared_ptr<run_state>& run) {
  if (run->begin_looking()) begin_observing(run, run->runtime().reactor(0), tune_regularly(run));
}

}  // namespace lade::detail
