#include <lade/detail/run_state.hpp>

#include <algorithm>
#include <cerrno>
#include <new>
#include <utility>

#include "is_stop.hpp"

namespace lade::detail {

std::exception_ptr run_state::fail(stage_counters& stage, const failure_policy& policy,
                                   std::string item, const lineage& origin, unsigned attempts) {
  auto cause = std::current_exception();
  if (has_ended_by(cause)) return cause;
  auto failure = [&](std::error_code code, std::string why) {
    auto prefix = stage.given_name() + ": ";  // in an error that is the stage's own
    if (why.starts_with(prefix)) why.erase(0, prefix.size());
    auto of_stage = stage.failed.fetch_add(1, std::memory_order_relaxed) + 1;
    if (item.empty() && !origin.empty()) item = "item " + to_string(origin);
    const bool own_budget = policy.budget.is_given();
    auto of_run = record({stage.name(), item, why, attempts, origin, epoch()}, !own_budget);
    bool tolerant =
        policy.substitutes || policy.finally.value_or(options_.on_error) == on_error::skip;
    bool pass = tolerant && code != condition::device_lost;
    bool too_many =
        pass && (own_budget ? exceeds(policy.budget, of_stage, stage.in) : exceeds_budget(of_run));
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

std::uint64_t run_state::record(failure_record failure, bool counts) {
  bool begin = false;
  std::uint64_t number = 0;
  {
    std::lock_guard lock(mutex_);
    if (counts) number = ++failed_;
    if (options_.on_failure || failure_log_.is_open()) {
      unreported_.push_back(failure);
      if (!room_ && unreported_.size() >= most_unreported) room_ = std::make_shared<event>();
      behind_ = room_ != nullptr;
      begin = !std::exchange(reporting_, true);
    }
    failures_.push_back(std::move(failure));
    if (failures_.size() > most_failures) failures_.pop_front();
  }
  if (!begin) return number;
  try {
    children_.start(report_failures());
  } catch (...) {
    std::lock_guard lock(mutex_);
    reporting_ = false;
    throw;
  }
  return number;
}

// One child at a time, so that listeners hear of one failure at a time, in their order; and a
// child, so that the consumer sees the end of the run after the last of them.
task<> run_state::report_failures() {
  while (auto next = next_unreported()) report(*next);
  co_return;
}

std::optional<failure_record> run_state::next_unreported() {
  std::shared_ptr<event> room;
  std::optional<failure_record> next;
  {
    std::lock_guard lock(mutex_);
    reporting_ = !unreported_.empty();
    if (!reporting_) return next;
    next = std::move(unreported_.front());
    unreported_.pop_front();
    if (unreported_.size() <= most_unreported / 2) room = std::exchange(room_, nullptr);
    behind_ = room_ != nullptr;
  }
  if (room) room->set();
  return next;
}

task<> run_state::room_for_failures() {
  std::shared_ptr<event> room;
  {
    std::lock_guard lock(mutex_);
    room = room_;
  }
  if (!room) co_return;
  try {
    co_await *room;
  } catch (const error&) {}  // stopped: the stage will notice
}

void run_state::report(const failure_record& failure) noexcept {
  try {
    if (failure_log_.is_open() && !(failure_log_ << to_json(failure) << std::endl))
      raise(errno, "write " + options_.failure_log);
    if (options_.on_failure && tells_failures_) options_.on_failure(failure);
  } catch (...) {
    {
      std::lock_guard lock(mutex_);
      if (!listener_failure_) listener_failure_ = std::current_exception();
    }
    end_by(std::current_exception());
  }
}

bool run_state::has_ended_by(const std::exception_ptr& failure) const {
  std::lock_guard lock(mutex_);
  return std::ranges::find(final_failures_, failure, &final_failure::thrown) !=
         final_failures_.end();
}

std::exception_ptr run_state::end_run(stage_error failure) {
  std::lock_guard lock(mutex_);
  auto thrown = std::make_exception_ptr(failure);
  final_failures_.push_back({thrown, std::move(failure)});
  return thrown;
}

void run_state::lacks_memory_to_take() { raise(ENOMEM, "take an item of a run"); }

// Names what no stage has named: no memory for the run itself, and a stop.
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

std::exception_ptr run_state::outcome(const std::exception_ptr& failure) const {
  std::lock_guard lock(mutex_);
  if (listener_failure_) return listener_failure_;
  auto first = std::ranges::find(final_failures_, failure, &final_failure::thrown);
  if (first == final_failures_.end()) return named_failure(failure);
  if (final_failures_.size() == 1) return failure;
  std::vector<stage_error> others;
  for (auto& each : final_failures_)
    if (&each != &*first) others.push_back(each.failure);
  return std::make_exception_ptr(stage_error(first->failure, std::move(others)));
}

bool run_state::exceeds_budget(std::uint64_t failed) const {
  std::lock_guard lock(mutex_);
  return exceeds(options_.error_budget, failed, items_begun());
}

// Parts of one item are items of their own, which the stage behind them takes. What a source takes,
// such as shards, are no items yet.
std::uint64_t run_state::items_begun() const noexcept {
  std::uint64_t of_sources = 0;
  std::uint64_t most_taken = 0;
  for (auto& stage : stages_) {
    std::uint64_t out = stage.out;
    std::uint64_t in = stage.in;
    if (in == 0 || stage.inputs == 0) of_sources += out;
    most_taken = std::max(most_taken, in);
  }
  return std::max(of_sources, most_taken);
}

std::vector<failure_record> run_state::failures() const {
  std::lock_guard lock(mutex_);
  return {failures_.begin(), failures_.end()};
}

}  // namespace lade::detail
