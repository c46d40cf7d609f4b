#include <lade/detail/pipeline/tuned_stages.hpp>

#include <algorithm>
#include <utility>

namespace lade::detail {

void tuned_stages::list(const stage_key& key, const stage_setting& fixed) {
  std::lock_guard lock(mutex_);
  find(key, fixed);
}

void tuned_stages::open(tunable& stage, const stage_key& key, stage_counters& counters,
                        const tuner& begin) {
  std::lock_guard lock(mutex_);
  auto& opened = find(key, {.stage = counters.name()});
  if (!opened.climb) opened.climb = begin;
  counters.most_workers = begin.most();
  opened.stage = &stage;
  if (!std::exchange(opened.counters, &counters)) {
    opened.before = done_by(counters, clock::now());
    opened.changed = true;
  }
  apply(opened);
}

void tuned_stages::close(const tunable& stage) noexcept {
  std::lock_guard lock(mutex_);
  auto closed = std::ranges::find(stages_, &stage, &automatic_stage::stage);
  if (closed != stages_.end()) closed->stage = nullptr;
}

void tuned_stages::begin_epoch() {
  std::lock_guard lock(mutex_);
  for (auto& each : stages_) {
    settle(each);
    each.stage = nullptr;
    each.counters = nullptr;
  }
}

void tuned_stages::look(clock::time_point now) {
  std::lock_guard lock(mutex_);
  if (frozen_) return;
  for (auto& each : stages_)
    if (each.stage && now - each.before.at >= interval) look_at(each, now);
}

void tuned_stages::freeze() {
  std::lock_guard lock(mutex_);
  frozen_ = true;
  std::ranges::for_each(stages_, settle);
}

std::vector<stage_setting> tuned_stages::settings() const {
  std::lock_guard lock(mutex_);
  std::vector<stage_setting> result;
  for (auto stage = stages_.rbegin(); stage != stages_.rend(); ++stage)
    result.push_back(stage->now);
  return result;
}

tuned_stages::work_done tuned_stages::done_by(const stage_counters& counters,
                                              clock::time_point now) {
  return {.at = now,
          .out = counters.out,
          .next_starved = counters.next_starved.until(now),
          .busy = counters.busy.until(now).all + counters.paused.until(now).all,
          .output_wait = counters.output_wait.until(now)};
}

tuning_sample tuned_stages::sample_between(const work_done& later, const work_done& earlier,
                                           unsigned concurrency) {
  auto elapsed = std::chrono::duration<double>(later.at - earlier.at);
  auto part = [&](std::chrono::duration<double> time) { return time / elapsed; };
  return {.rate = static_cast<double>(later.out - earlier.out) / elapsed.count(),
          .starved = part(later.next_starved - earlier.next_starved),
          .busy = part(later.busy - earlier.busy) / std::max(concurrency, 1u),
          .blocked = part(later.output_wait - earlier.output_wait)};
}

void tuned_stages::apply(automatic_stage& of) {
  auto& setting = of.climb->now();
  of.now.concurrency = setting.concurrency;
  if (setting.buffer) of.now.buffer = setting.buffer;
  if (!of.stage) return;
  of.counters->workers = setting.concurrency;
  // More slots are counted before they are used, fewer after they have been withdrawn.
  const auto slots = of.stage->slots_at(setting);
  if (slots > of.counters->slots) of.counters->slots = slots;
  of.stage->set(setting);
  of.counters->slots = slots;
}

void tuned_stages::settle(automatic_stage& of) {
  if (!of.climb) return;
  of.climb->settle();
  apply(of);
}

// Judges the interval if enough items have passed in it, or after two seconds. Skips an interval in
// which the setting has changed: it includes items that started with the old one.
void tuned_stages::look_at(automatic_stage& of, clock::time_point now) {
  auto done = done_by(*of.counters, now);
  auto concurrency = of.climb->now().concurrency;
  bool is_conclusive = done.out - of.before.out >= 2 * concurrency;
  if (!is_conclusive && now - of.before.at < std::chrono::seconds(2)) return;
  bool judged = !std::exchange(of.changed, false);
  if (judged && of.climb->step(sample_between(done, of.before, concurrency))) {
    apply(of);
    of.changed = true;
  }
  of.before = done;
}

tuned_stages::automatic_stage& tuned_stages::find(const stage_key& key,
                                                  const stage_setting& otherwise) {
  auto known = std::ranges::find(stages_, key, &automatic_stage::key);
  return known != stages_.end() ? *known : stages_.emplace_back(key, otherwise);
}

}  // namespace lade::detail
