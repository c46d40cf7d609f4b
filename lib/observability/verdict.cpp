#include "figures.hpp"

#include <lade/printable.hpp>
#include <lade/stats.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace lade {

using detail::percent;
using detail::share;
using detail::short_time;
using detail::utilisation;
using nanoseconds = std::chrono::nanoseconds;

// A stage is a candidate for the bottleneck if its workers are busy for this share of the time.
static constexpr double busy_share = 0.75;

// The share of time in which the workers of a stage pause before retries.
static double paused_share(const stage_statistics& stage, const run_statistics& run) {
  return share(stage.paused, run.elapsed) / std::max(stage.workers, 1u);
}
// The share of time in which the workers of a stage have an item.
static double occupation(const stage_statistics& stage, const run_statistics& run) {
  return utilisation(stage, run) + paused_share(stage, run);
}

static const stage_statistics* busiest(const run_statistics& run) {
  auto most = std::ranges::max_element(
      run.stages, {}, [&](const stage_statistics& stage) { return occupation(stage, run); });
  return most != run.stages.end() && occupation(*most, run) > 0 ? &*most : nullptr;
}

// The time in which the calls of a stage occupy a thread. A call that awaits something does not.
// returned_on_threads(): of calls that have returned, whose CPU time is known.
static nanoseconds time_on_threads(const stage_statistics& stage) {
  return stage.on_reactor ? nanoseconds() : std::max(stage.busy - stage.awaited, nanoseconds());
}
static nanoseconds returned_on_threads(const stage_statistics& stage) {
  return stage.on_reactor ? nanoseconds() : std::max(stage.returned - stage.awaited, nanoseconds());
}

// The work of stages on threads that they share: the CPU pool, or the part of it for automatic
// stages.
struct shared_work {
  unsigned threads = 0;
  nanoseconds busy{};
  nanoseconds returned{};
  nanoseconds cpu{};
  nanoseconds preempted{};
  const stage_statistics* most = nullptr;  // the stage that is busy the longest

  void add(const stage_statistics& stage) {
    auto time = time_on_threads(stage);
    busy += time;
    returned += returned_on_threads(stage);
    cpu += stage.cpu;
    preempted += stage.preempted;
    if (time.count() && (!most || time > time_on_threads(*most))) most = &stage;
  }
};

static shared_work work_on_pool(const run_statistics& run) {
  shared_work all{.threads = run.threads};
  for (auto& stage : run.stages)
    if (!stage.own_threads) all.add(stage);
  return all;
}

static shared_work automatic_work(const run_statistics& run) {
  shared_work all;
  for (auto& stage : run.stages) {
    if (stage.shared_threads == 0) continue;
    all.threads = stage.shared_threads;
    all.add(stage);
  }
  return all;
}

static double use_of(const shared_work& work, const run_statistics& run) {
  return work.threads ? share(work.busy, run.elapsed) / work.threads : 0;
}

static std::string workers_of(const stage_statistics& stage, const run_statistics& run) {
  if (stage.workers == 0)
    return fmt::format("it runs inline, busy {} of the time", percent(utilisation(stage, run)));
  std::string what = stage.on_reactor ? " task" : " worker";
  if (stage.workers > 1) what += "s";
  return fmt::format("{}{} busy {} of the time", stage.workers, what,
                     percent(utilisation(stage, run)));
}

// Whether the stage is a split. The stages listed after it, up to the next source, are in its paths
// or behind them.
static bool has_paths(const stage_statistics& stage) { return stage.gathers && stage.inputs == 1; }

// Among the stages with workers between the source and `limiting` that are in no path: the one that
// is blocked on output the most. Null if it is blocked for less than 30 % of the time.
static const stage_statistics* held_back_by(const stage_statistics& limiting,
                                            const run_statistics& run) {
  const stage_statistics* most = nullptr;
  bool in_paths = false;
  for (auto& stage : run.stages) {
    if (&stage == &limiting) break;
    if (stage.inputs == 0) {
      most = nullptr;
      in_paths = false;
    }
    in_paths = in_paths || has_paths(stage);
    if (in_paths || stage.workers == 0) continue;
    if (!most || stage.output_wait > most->output_wait) most = &stage;
  }
  return most && share(most->output_wait, run.elapsed) > 0.3 ? most : nullptr;
}

// Whether calls mostly compute, wait, or lack a CPU. Unknown while no call has returned.
enum class pace : std::uint8_t { unknown, computes, waits, is_preempted };

static pace pace_of(nanoseconds cpu, nanoseconds preempted, nanoseconds returned) {
  if (returned.count() == 0) return pace::unknown;
  if (cpu.count() == 0 || share(cpu, returned) >= 0.5) return pace::computes;
  return share(cpu + preempted, returned) < 0.5 ? pace::waits : pace::is_preempted;
}

static constexpr auto not_known_yet = ": whether they compute or wait is not known yet.";

// The reason why calls on `threads` threads lack a CPU.
static std::string shared_cpus(unsigned threads, const run_statistics& run) {
  return threads > run.cpus ? ": all CPUs are in use."
                            : ": the CPUs are shared with other programs.";
}

// Whether the stage mostly awaits, so that a higher concurrency needs no more threads.
static bool mostly_awaits(const stage_statistics& stage) {
  return stage.on_reactor || share(stage.awaited, stage.returned) > 0.5;
}

// A description of the time in which the workers are busy; empty if they mostly compute.
static std::string time_in_words(const stage_statistics& stage, pace how) {
  std::string they = stage.workers ? "they " : "it ";
  auto verb = [&](const char* plural) { return they + plural + (stage.workers ? " " : "s "); };
  if (mostly_awaits(stage))
    return stage.on_reactor ? ""
                            : fmt::format(", of which {}{}", verb("await"),
                                          percent(share(stage.awaited, stage.returned)));
  if (how == pace::unknown) return ", in calls that have not returned";
  if (how == pace::computes) return "";
  auto text =
      fmt::format(", of which {}{}", verb("compute"), percent(share(stage.cpu, stage.returned)));
  if (how == pace::waits) return text;
  return fmt::format("{} and {} a CPU {}", text, stage.workers ? "lack" : "lacks",
                     percent(share(stage.preempted, stage.returned)));
}

// The advice for a stage that mostly awaits.
static std::string more_in_flight(const stage_statistics& stage) {
  if (stage.most_workers == 0) return ": raise the concurrency of " + stage.name + ".";
  if (stage.workers >= stage.most_workers) return ": raise tune.most.";
  return ": its concurrency is automatic, and the search has found no better one so far.";
}

static std::string limited_by_stage(const stage_statistics& stage, const run_statistics& run) {
  auto how = pace_of(stage.cpu, stage.preempted, returned_on_threads(stage));
  const bool pauses = utilisation(stage, run) < busy_share;  // only with pauses, it is busy
  auto text = fmt::format("{} is the bottleneck: {}", stage.name, workers_of(stage, run));
  text += pauses ? ", and pausing between attempts " + percent(paused_share(stage, run))
                 : time_in_words(stage, how);
  auto* waiting = held_back_by(stage, run);
  if (waiting)
    text += fmt::format("; {} is blocked on output {} of the time", waiting->name,
                        percent(share(waiting->output_wait, run.elapsed)));
  if (pauses)
    return text + ": raise the concurrency of " + stage.name + ", or have fewer of its calls fail.";
  if (mostly_awaits(stage)) return text + more_in_flight(stage);
  if (how == pace::unknown) return text + not_known_yet;
  if (how == pace::waits)
    return text + ": have its function return a task and await, or raise threads.";
  auto threads = stage.own_threads ? stage.own_threads : run.threads;
  if (how == pace::is_preempted) return text + shared_cpus(threads, run);
  if (stage.shared_threads) return text + ": raise tune.cpus.";
  if (stage.workers < threads) return text + ": raise the concurrency of " + stage.name + ".";
  if (threads >= run.cpus) return text + ": all CPUs are in use.";
  return text + (waiting ? ": raise threads, not the concurrency of " + waiting->name + "."
                         : ": more threads would help.");
}

static std::string use_in_words(const shared_work& work, const run_statistics& run) {
  auto threads = work.threads == 1 ? " thread is busy " : " threads are busy ";
  return fmt::format("{}{}{} of the time, mostly with {}", work.threads, threads,
                     percent(use_of(work, run)), work.most->name);
}

static std::string limited_by_share(const shared_work& work, const run_statistics& run) {
  return fmt::format("The CPUs of automatic stages are the bottleneck: their {}: raise tune.cpus.",
                     use_in_words(work, run));
}

static std::string limited_by_pool(const shared_work& pool, const run_statistics& run) {
  auto text = "The CPU pool is the bottleneck: its " + use_in_words(pool, run);
  auto how = pace_of(pool.cpu, pool.preempted, pool.returned);
  if (how == pace::unknown) return text + ", in calls that have not returned" + not_known_yet;
  if (how != pace::computes)
    text += fmt::format(", but compute only {} of that", percent(share(pool.cpu, pool.returned)));
  if (how == pace::waits)
    return text + ": have functions that wait return tasks, or raise threads.";
  if (how == pace::is_preempted) return text + shared_cpus(pool.threads, run);
  return text + (run.threads < run.cpus ? ": raise threads." : ": all CPUs are in use.");
}

// The items of a stage that take more than five times the median.
struct slow_items {
  std::uint64_t count = 0;
  nanoseconds least{};
  nanoseconds together{};
};

static slow_items slow_items_of(const stage_statistics& stage) {
  slow_items slow;
  for (auto i = stage.durations.counts.size(); i-- > 0;) {
    auto duration = duration_counts::duration_of(i);
    if (duration <= 5 * stage.p50) break;
    if (stage.durations.counts[i] == 0) continue;
    slow.count += stage.durations.counts[i];
    slow.together += static_cast<std::int64_t>(stage.durations.counts[i]) * duration;
    slow.least = duration;
  }
  return slow;
}

static bool is_often(nanoseconds time, const run_statistics& run) {
  return share(time, run.elapsed) > 0.25;
}

// Whether a stage is blocked on output while the next stage is starved.
static bool is_held_up(const stage_statistics& stage, const run_statistics& run) {
  return stage.workers > 0 && is_often(stage.output_wait, run) && is_often(stage.next_starved, run);
}

// A stage whose slots are full of finished items that wait for a slow one. Null if there is none.
static const stage_statistics* held_up_by_slow_items(const run_statistics& run) {
  for (auto& stage : run.stages)
    if (is_held_up(stage, run) && is_often(slow_items_of(stage).together, run)) return &stage;
  return nullptr;
}

static std::string limited_by_slow_items(const stage_statistics& stage, const run_statistics& run) {
  auto slow = slow_items_of(stage);
  return fmt::format(
      "Slow items block {}: one in {} takes {} or more, the median {}. The next stage waits for "
      "one {} of the time, while finished items are queued behind it: raise the buffer of {}, or "
      "yield items as they finish (item_order::completion).",
      stage.name, stage.durations.total() / slow.count, short_time(slow.least),
      short_time(stage.p50), percent(share(stage.next_starved, run.elapsed)), stage.name);
}

// A flat_map in input order whose queues are full of the parts of later items, while the item that
// is read yields slowly. Null if there is none.
static const stage_statistics* held_up_by_order(const run_statistics& run) {
  for (auto& stage : run.stages)
    if (is_held_up(stage, run) && stage.out > stage.in) return &stage;
  return nullptr;
}

static std::string limited_by_order(const stage_statistics& stage, const run_statistics& run) {
  return fmt::format(
      "The order of the parts blocks {}: the next stage waits for a part {} of the time, while "
      "parts of later items are queued: raise the buffer of {}, or yield parts as they are ready "
      "(item_order::completion).",
      stage.name, percent(share(stage.next_starved, run.elapsed)), stage.name);
}

// The time for which a wait for memory delayed the next stage, at most. A stage that reads ahead
// also waits for memory, but delays nobody.
static nanoseconds memory_lack(const stage_statistics& stage) {
  return stage.slots ? std::min(stage.memory_wait, stage.next_starved) : stage.memory_wait;
}

// Whether a stage is slow because it waits for memory. During such a wait, a stage that awaits
// counts as busy; the workers of other stages do not.
static bool lacks_memory(const stage_statistics& stage, const run_statistics& run) {
  return share(memory_lack(stage), run.elapsed) > 0.2 &&
         (mostly_awaits(stage) || utilisation(stage, run) < busy_share);
}

// The share of time in which memory delayed the run; 0 if a stage is busy for other reasons.
static double memory_limit(const run_statistics& run) {
  auto longest = run.memory_wait;
  for (auto& stage : run.stages) {
    if (lacks_memory(stage, run))
      longest = std::max(longest, memory_lack(stage));
    else if (occupation(stage, run) >= busy_share)
      return 0;
  }
  return share(longest, run.elapsed);
}

// The inline stages between queues: they run on the thread of the stage behind them.
//
//   before [ queue ] ── names... ──> [ queue ] behind
//
// `time`: the time that they delay the run, which is the time that `behind` waited for input, less
// the time that the queues before were empty.
struct stage_gap {
  std::vector<const stage_statistics*> before = {};  // several if branches are joined
  const stage_statistics* behind = nullptr;          // null: the consumer
  std::vector<std::string> names = {};
  bool has_source = false;
  bool in_paths = false;  // includes paths and all stages behind them, since paths are concurrent
  nanoseconds time{};

  void add(const stage_statistics& stage) {
    names.push_back(stage.name);
    has_source = has_source || stage.inputs == 0;
    in_paths = in_paths || has_paths(stage);
  }
  void join(const stage_gap& other) {
    before.insert(before.end(), other.before.begin(), other.before.end());
    names.insert(names.end(), other.names.begin(), other.names.end());
    has_source = has_source || other.has_source;
    in_paths = false;
  }
  void close(const stage_statistics* with, nanoseconds waited) {
    behind = with;
    time = waited;
    for (auto* each : before) time -= each->next_starved;
  }
};

// run.stages lists the stages of each branch in order, and all branches before the stage that joins
// them.
static std::vector<stage_gap> gaps_of(const run_statistics& run) {
  std::vector<stage_gap> gaps;
  std::vector<stage_gap> open(1);  // the last gap of each branch that is not joined yet
  for (auto& stage : run.stages) {
    if (stage.inputs == 0) open.emplace_back();
    for (auto joined = stage.inputs; joined > 1 && open.size() > 1; --joined) {
      auto last = std::move(open.back());
      open.pop_back();
      open.back().join(last);
    }
    if (open.back().in_paths || (stage.workers == 0 && (stage.slots == 0 || stage.gathers))) {
      open.back().add(stage);
      continue;
    }
    open.back().close(&stage, stage.input_wait);
    gaps.push_back(std::exchange(open.back(), {.before = {&stage}}));
  }
  open.back().close(nullptr, run.consumer_wait);
  gaps.push_back(open.back());
  return gaps;
}

static std::string listed(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i)
    text += (i == 0 ? "" : i + 1 == names.size() ? " and " : ", ") + names[i];
  return text;
}

static std::string limited_by_gap(const stage_gap& gap, const run_statistics& run) {
  const bool several = gap.names.size() > 1;
  auto text = gap.names.empty() ? "The input of " + gap.behind->name : listed(gap.names);
  auto waited = gap.behind ? gap.behind->input_wait : run.consumer_wait;
  text += fmt::format("{} the bottleneck: no stage with workers is busy, and {}{} of the time.",
                      several ? " are" : " is",
                      gap.behind ? gap.behind->name + " is starved " : "the consumer waits ",
                      percent(share(waited, run.elapsed)));
  if (gap.has_source || gap.before.empty() || gap.in_paths) return text;
  return fmt::format("{} {} on one thread: move the work into a map with concurrency.", text,
                     several ? "They run" : "It runs");
}

// The gap with the longest time, among gaps in which code runs; null if there is none.
static const stage_gap* widest(const std::vector<stage_gap>& gaps) {
  const stage_gap* result = nullptr;
  for (auto& gap : gaps) {
    if (gap.names.empty() && (!gap.behind || !gap.before.empty())) continue;
    if (!result || gap.time > result->time) result = &gap;
  }
  return result;
}

static std::string limited_by_none_alone(const stage_statistics* busiest,
                                         const run_statistics& run) {
  auto text = fmt::format(
      "No stage limits the run by itself: the consumer waits {} of the time, finished items wait "
      "for it {}",
      percent(share(run.consumer_wait, run.elapsed)), percent(share(run.output_wait, run.elapsed)));
  return busiest ? fmt::format("{}, and the busiest stage is {}: {}.", text, busiest->name,
                               workers_of(*busiest, run))
                 : text + ".";
}

static std::string judge(const run_statistics& run) {
  if (share(run.output_wait, run.elapsed) > 0.5)
    return fmt::format("The consumer is the bottleneck: finished items wait for it {} of the time.",
                       percent(share(run.output_wait, run.elapsed)));
  auto memory = memory_limit(run);
  if (memory > 0.2 && share(run.consumer_wait, run.elapsed) > 0.2)
    return fmt::format(
        "Memory is the bottleneck: stages waited for the budget {} of the time, and the consumer "
        "waited {}: raise memory_bytes.",
        percent(memory), percent(share(run.consumer_wait, run.elapsed)));
  auto* stage = busiest(run);
  if (stage && occupation(*stage, run) >= busy_share) return limited_by_stage(*stage, run);
  auto pool = work_on_pool(run);
  auto shared = automatic_work(run);
  if (use_of(shared, run) >= std::max(busy_share, use_of(pool, run)))
    return limited_by_share(shared, run);
  if (pool.most && use_of(pool, run) >= busy_share) return limited_by_pool(pool, run);
  if (auto* slow = held_up_by_slow_items(run)) return limited_by_slow_items(*slow, run);
  if (auto* ordered = held_up_by_order(run)) return limited_by_order(*ordered, run);
  auto gaps = gaps_of(run);
  if (std::ranges::none_of(run.stages, &stage_statistics::workers))
    return "The run has no concurrent stages: its speed is that of its functions on one thread.";
  auto* gap = widest(gaps);
  if (gap && share(gap->time, run.elapsed) > 0.4) return limited_by_gap(*gap, run);
  return limited_by_none_alone(stage, run);
}

std::string verdict(const run_statistics& run) {
  constexpr nanoseconds least = std::chrono::milliseconds(100);
  if (run.elapsed < least)
    return fmt::format("Too short to judge: a run of {} is mostly start-up.",
                       short_time(run.elapsed));
  auto shown = run;
  for (auto& stage : shown.stages) stage.name = printable(stage.name);
  return (run.delivered == 0 ? "Nothing was delivered. " : "") + judge(shown);
}

}  // namespace lade
