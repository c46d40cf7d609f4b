#include <lade/detail/coroutines/is_stop.hpp>
#include <lade/detail/pipeline/failure_journal.hpp>
#include <lade/detail/pipeline/stage_registry.hpp>
#include <lade/error.hpp>
#include <lade/event.hpp>

#include <algorithm>
#include <cerrno>
#include <deque>
#include <fstream>
#include <mutex>
#include <new>
#include <utility>

namespace lade::detail {

struct failure_journal::contents {
  static constexpr std::size_t most_records = 1000;
  static constexpr std::size_t most_unreported = 1000;  // from then on, stages wait

  // A failure that ends the run: the exception as thrown, and its parts for the text of others.
  struct final_failure {
    std::exception_ptr thrown;
    stage_error failure;
  };

  std::ofstream log;         // used by report() only
  mutable std::mutex mutex;  // guards the members below
  std::uint64_t failed = 0;  // failures that count in the budget of the run
  std::deque<failure_record> records;
  std::deque<failure_record> unreported;
  bool reporting = false;            // report_all is running
  std::shared_ptr<event> caught_up;  // set when half are reported; null unless stages wait
  std::vector<final_failure> final_failures;
  std::exception_ptr listener_failure;  // the first exception of on_failure or of the log
};

failure_journal::failure_journal(const run_options& options, const stage_registry& stages,
                                 scope& children)
    : options_(options), stages_(stages), children_(children), in_(std::make_unique<contents>()) {
  if (options.failure_log.empty()) return;
  in_->log.open(options.failure_log, std::ios::app);
  if (!in_->log) raise(errno, "open " + options.failure_log);
}

failure_journal::~failure_journal() = default;

std::exception_ptr failure_journal::fail(stage_counters& stage, const failure_policy& policy,
                                         std::string item, const lineage& origin,
                                         unsigned attempts) {
  auto cause = std::current_exception();
  if (has_ended_by(cause)) return cause;
  auto failure = [&](std::error_code code, std::string why) {
    auto prefix = stage.given_name() + ": ";  // errors of the stage itself begin with its name
    if (why.starts_with(prefix)) why.erase(0, prefix.size());
    auto of_stage = stage.failed.fetch_add(1, std::memory_order_relaxed) + 1;
    if (item.empty() && !origin.empty()) item = "item " + to_string(origin);
    const bool own_budget = policy.budget.is_given();
    auto of_run = record({stage.name(), item, why, attempts, origin, options_.epoch.value_or(0)},
                         !own_budget);
    bool tolerant =
        policy.substitutes || policy.finally.value_or(options_.on_error) == on_error::skip;
    bool pass = tolerant && code != condition::device_lost;
    bool too_many =
        pass && (own_budget ? exceeds(policy.budget, of_stage, stage.in)
                            : exceeds(options_.error_budget, of_run, stages_.items_begun()));
    if (too_many) why += " (more failures than the budget allows)";
    if (too_many || !pass)
      return end_run({cause, code, stage.name(), std::move(item), origin, why});
    auto& passed = policy.substitutes ? stage.substituted : stage.skipped;
    passed.fetch_add(1, std::memory_order_relaxed);
    return std::exception_ptr();
  };
  try {
    throw;
  } catch (const std::system_error& e) {
    return failure(e.code(), e.what());
  } catch (const std::exception& e) {
    return failure(errc::failed, e.what());
  } catch (...) {
    return failure(errc::failed, "an exception of unknown type");
  }
}

std::uint64_t failure_journal::record(failure_record failure, bool counts) {
  bool begin = false;
  std::uint64_t number = 0;
  {
    std::lock_guard lock(in_->mutex);
    if (counts) number = ++in_->failed;
    if (options_.on_failure || in_->log.is_open()) {
      in_->unreported.push_back(failure);
      if (!in_->caught_up && in_->unreported.size() >= contents::most_unreported)
        in_->caught_up = std::make_shared<event>();
      behind_ = in_->caught_up != nullptr;
      begin = !std::exchange(in_->reporting, true);
    }
    in_->records.push_back(std::move(failure));
    if (in_->records.size() > contents::most_records) in_->records.pop_front();
  }
  if (!begin) return number;
  try {
    children_.start(report_all(*this));
  } catch (...) {
    std::lock_guard lock(in_->mutex);
    in_->reporting = false;
    throw;
  }
  return number;
}

// At most one such child runs, so reports are made one after the other and in order. The run ends
// after its children, so the consumer receives the end of the run after the last report.
task<> failure_journal::report_all(failure_journal& self) {
  failure_record next;
  while (self.take_unreported(next)) self.report(next);
  co_return;
}

bool failure_journal::take_unreported(failure_record& next) {
  std::shared_ptr<event> caught_up;
  {
    std::lock_guard lock(in_->mutex);
    in_->reporting = !in_->unreported.empty();
    if (!in_->reporting) return false;
    next = std::move(in_->unreported.front());
    in_->unreported.pop_front();
    if (in_->unreported.size() <= contents::most_unreported / 2)
      caught_up = std::exchange(in_->caught_up, nullptr);
    behind_ = in_->caught_up != nullptr;
  }
  if (caught_up) caught_up->set();
  return true;
}

task<> failure_journal::caught_up() {
  std::shared_ptr<event> caught_up;
  {
    std::lock_guard lock(in_->mutex);
    caught_up = in_->caught_up;
  }
  if (!caught_up) co_return;
  try {
    co_await *caught_up;
  } catch (const error&) {}  // stopped: the stage itself reports that
}

void failure_journal::report(const failure_record& failure) noexcept {
  try {
    if (in_->log.is_open() && !(in_->log << to_json(failure) << '\n' << std::flush))
      raise(errno, "write " + options_.failure_log);
    if (options_.on_failure && reports_) options_.on_failure(failure);
  } catch (...) {
    {
      std::lock_guard lock(in_->mutex);
      if (!in_->listener_failure) in_->listener_failure = std::current_exception();
    }
    children_.fail(std::current_exception());
  }
}

bool failure_journal::has_ended_by(const std::exception_ptr& failure) const {
  std::lock_guard lock(in_->mutex);
  return std::ranges::find(in_->final_failures, failure, &contents::final_failure::thrown) !=
         in_->final_failures.end();
}

std::exception_ptr failure_journal::end_run(stage_error failure) {
  std::lock_guard lock(in_->mutex);
  auto thrown = std::make_exception_ptr(failure);
  in_->final_failures.push_back({thrown, std::move(failure)});
  return thrown;
}

std::exception_ptr failure_journal::reason_to_end(std::exception_ptr failure) const noexcept {
  std::lock_guard lock(in_->mutex);
  return in_->final_failures.empty() ? failure : in_->final_failures.front().thrown;
}

// Replaces exceptions that name no stage: a stop, and std::bad_alloc of the run itself.
static std::exception_ptr named_failure(const std::exception_ptr& failure) {
  if (is_stop(failure)) return std::make_exception_ptr(error(errc::stopped, "run"));
  try {
    std::rethrow_exception(failure);
  } catch (const std::bad_alloc&) {
    auto why = std::make_error_code(std::errc::not_enough_memory);
    return std::make_exception_ptr(error(why, "run a pipeline"));
  } catch (...) {
    return failure;
  }
}

std::exception_ptr failure_journal::outcome(const std::exception_ptr& failure) const {
  std::lock_guard lock(in_->mutex);
  if (in_->listener_failure) return in_->listener_failure;
  auto& all = in_->final_failures;
  auto first = std::ranges::find(all, failure, &contents::final_failure::thrown);
  if (first == all.end()) return named_failure(failure);
  if (all.size() == 1) return failure;
  std::vector<stage_error> others;
  for (auto& each : all)
    if (&each != &*first) others.push_back(each.failure);
  return std::make_exception_ptr(stage_error(first->failure, std::move(others)));
}

std::vector<failure_record> failure_journal::records() const {
  std::lock_guard lock(in_->mutex);
  return {in_->records.begin(), in_->records.end()};
}

}  // namespace lade::detail
