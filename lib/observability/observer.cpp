#include <lade/continue_on.hpp>
#include <lade/detail/observability/observer.hpp>
#include <lade/detail/runtime/operation.hpp>
#include <lade/runtime.hpp>
#include <lade/support/later.hpp>
#include <lade/task.hpp>
#include <lade/this_context.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "figures.hpp"

namespace lade::detail {

static task<> report_regularly(std::shared_ptr<run_state> run) {
  auto& wanted = run->options().report;
  run_report report;
  auto due = clock::now();
  for (bool over = false; !over;) {
    due = std::max(support::later(due, wanted.every), clock::now());
    over = !co_await sleep_until(due);
    auto now = run->statistics();
    report.last = over;
    report.interval = now - report.total;
    report.total = std::move(now);
    report.process = read_process_statistics({.pss = wanted.pss});
    wanted.to(report);
  }
}

run_watch::run_watch(std::shared_ptr<run_state> run)
    : run_(std::move(run)), dog_(run_->runtime().watchdog()) {
  dog_.add(*this);
}

// Exceptions of the listener are ignored: it is too late for them to end the run.
run_watch::~run_watch() {
  try {
    for (auto& step : dog_.remove(*this)) name_blocking(step);
  } catch (...) {}
}

std::chrono::nanoseconds run_watch::interval() const noexcept {
  auto after = run_->options().stall.after;
  return after.count() > 0
             ? std::max<std::chrono::nanoseconds>(after / 4, std::chrono::microseconds(100))
             : after.max();
}

void run_watch::look(std::span<const activity::step> blocking) noexcept {
  try {
    for (auto& step : blocking) name_blocking(step);
    if (run_->watches_stalls()) look_for_stall();
  } catch (...) {
    run_->end_by(std::current_exception());
  }
}

void run_watch::look_for_stall() {
  auto waited = run_->output.next_starved.until(clock::now());
  if (auto now = run_->output.out.load(); now != delivered_) {
    delivered_ = now;
    waited_before_ = waited;
    reported_ = false;
  }
  auto stalled = waited - waited_before_;
  if (reported_ || stalled < run_->options().stall.after) return;
  reported_ = true;
  notify(fmt::format("lade: the consumer has waited for an item for {}.\n{}", short_time(stalled),
                     run_->overview()));
}

void run_watch::name_blocking(const activity::step& step) {
  auto stage = run_->stages().name_of(step.stage);
  if (stage.empty() || std::ranges::find(named_, step.stage) != named_.end()) return;
  named_.push_back(step.stage);
  auto milliseconds = std::chrono::duration_cast<std::chrono::milliseconds>(step.lasted).count();
  notify(
      fmt::format("lade: stage {} has blocked a reactor for {} ms, {}. Nothing is read meanwhile. "
                  "Move work that blocks or computes to a function that does not return a task.\n",
                  stage, milliseconds, step.doing));
}

void run_watch::notify(const std::string& text) const {
  if (run_->options().stall.to)
    run_->options().stall.to(text);
  else
    std::fputs(text.c_str(), stderr);
}

// Observers have a separate stop token, `over`. The stop token of the children is stopped by the
// first failure, before the consumer has received the remaining items.
static task<> observe_until(std::stop_token over, std::shared_ptr<run_state> run, executor& home,
                            task<> observing) {
  auto execution = run->make_context(std::move(over));
  execution.home = &home;
  co_await continue_on(home);
  co_await with_context(execution, std::move(observing));
}

static void begin_observing(const std::shared_ptr<run_state>& run, executor& home,
                            task<> observing) {
  run->children().scope().start(
      observe_until(run->over.get_token(), run, home, std::move(observing)));
}

void begin_reports(const std::shared_ptr<run_state>& run) {
  auto& where = run->runtime();
  if (run->options().report.to) begin_observing(run, where.pool(), report_regularly(run));
}

static task<> tune_regularly(std::shared_ptr<run_state> run) {
  while (true) {
    bool slept = co_await sleep_until(clock::now() + tuned_stages::interval);
    if (!slept) co_return;
    run->tuned().look(clock::now());
  }
}

void begin_tuning(const std::shared_ptr<run_state>& run) {
  if (run->is_first_start(&run->tuned()))
    begin_observing(run, run->runtime().reactor(0), tune_regularly(run));
}

}  // namespace lade::detail
