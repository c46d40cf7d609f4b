#include <lade/detail/require.hpp>
#include <lade/detail/run_state.hpp>
#include <lade/this_context.hpp>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdio>
#include <variant>

namespace lade {

namespace detail {

// The options of a run that goes on from a state.
static run_options options_of_rest(run_options options) {
  if (options.state) {
    options.epoch = options.state->epoch;
    options.seed = options.state->seed;
  }
  return options;
}

static void require_run(const run_options& options) {
  require_count("run", "ready", options.ready, {.least = 1});
  require_retry("run", options.retry);
  require_budget("run", options.error_budget);
  require_tuning("run", options.tune);
  require_duration("run", "stall.after", options.stall.after);
  if (options.report.to)
    require_duration("run", "report.every", options.report.every, std::chrono::nanoseconds(1));
}

run_state::run_state(lade::runtime& where, const run_options& options, scope& children,
                     const run_state* before)
    : runtime_(where),
      options_(options_of_rest(options)),
      tuned_(before ? before->tuned_ : std::make_shared<tuned_stages>()),
      progress_(std::exchange(options_.state, std::nullopt), options_.require_state,
                options_.other_data),
      arrows_(options_.trace),
      children_(children) {
  require_run(options_);
  auto& pool = runtime_.pool();
  auto automatic_threads = cpus_to_use(options_.tune, pool.size());
  if (automatic_threads < pool.size())
    automatic_share_ = std::make_shared<pool_share>(pool, automatic_threads);
  if (options_.failure_log.empty()) return;
  failure_log_.open(options_.failure_log, std::ios::app);
  if (!failure_log_) raise(errno, "open " + options_.failure_log);
}

context run_state::surroundings(std::stop_token stop) noexcept {
  context result;
  result.runtime = &runtime_;
  result.home = &runtime_.pool();
  result.stop = std::move(stop);
  result.memory = &runtime_.memory();
  result.claim = &claim_;
  result.trace = options_.trace;
  return result;
}

void run_state::begin() {
  std::lock_guard lock(mutex_);
  started_ = clock::now();
}

void run_state::count_delivered() noexcept {
  bump(sink.out);
  if (first_item_.load(std::memory_order_relaxed) == clock::time_point())
    first_item_.store(clock::now(), std::memory_order_relaxed);
}

void run_state::end() noexcept {
  auto never = clock::time_point();
  ended_.compare_exchange_strong(never, clock::now(), std::memory_order_relaxed);
  over.request_stop();
}

stage_counters& run_state::add_stage(std::string name, const stage_key& stage, std::size_t inputs) {
  std::lock_guard lock(mutex_);
  auto known = opened_.find(stage);
  if (known != opened_.end()) return *known->second;
  auto& namesakes = namesakes_[name];
  if (!namesakes) namesakes = std::make_shared<std::atomic<unsigned>>(0);
  auto& added =
      stages_.emplace_back(std::move(name), static_cast<unsigned>(stages_.size() + 1), namesakes);
  added.inputs = static_cast<unsigned>(inputs);
  opened_.emplace(stage, &added);
  if (*namesakes == 1) return added;
  tuned_->rename([this](const stage_key& key) {
    auto tuned = opened_.find(key);
    return tuned == opened_.end() ? std::string() : tuned->second->name();
  });
  return added;
}

void run_state::note_workers(stage_counters& stage, const stage_workers& staff) {
  std::lock_guard lock(mutex_);
  stage.staff = staff;
  stage.workers = staff.workers;
}

void run_state::note_groups(stage_counters& stage, std::string groups) {
  std::lock_guard lock(mutex_);
  stage.groups = std::move(groups);
}

opening opening::of(const void* opened) const {
  auto result = *this;
  result.stage = opened;
  return result;
}

opening opening::branch(std::size_t i, std::size_t count) const {
  auto result = *this;
  result.span = span / std::bit_ceil(count);
  if (result.span == 0)
    throw error(errc::limit_exceeded, "open a source", "it is one of too many, inside of others");
  result.first = first + i * result.span;
  result.inside_of = random(inside_of, i + 1)();
  return result;
}

opening opening::until(std::stop_token requested) const {
  auto result = *this;
  result.stop = std::move(requested);
  return result;
}

opening opening::taken_by(std::shared_ptr<const demand> taker) const {
  auto result = *this;
  result.wanted = std::move(taker);
  return result;
}

opening opening::mixing_parts(const char* how) const {
  auto result = *this;
  result.mixes_parts = how;
  return result;
}

opening opening::reordering(const char* how) const {
  if (parts_behind)
    refuse_state(std::string(how) + " is before a stage that makes several items of one");
  return mixing_parts(how);
}

opening opening::making_parts(const std::string& how) const {
  if (mixes_parts)
    refuse_state(how + " makes several items of one before " + mixes_parts);
  else
    run->progress().expect_parts();
  auto result = *this;
  result.parts_behind = true;
  return result;
}

void opening::grouping(stage_counters& counters, std::size_t size, std::size_t step) const {
  if (!parts_behind) return;
  auto groups = "of " + std::to_string(size);
  if (step != size) groups += " in steps of " + std::to_string(step);
  run->note_groups(counters, std::move(groups));
}

void opening::refuse_state(const std::string& why) const {
  run->progress().refuse(why);
  if (indivisible) *indivisible = true;
}

void opening::depends_on_epoch(const std::vector<order_step>& steps) const {
  for (auto& step : steps) {
    if (std::holds_alternative<shuffle_step>(step)) depends_on_epoch("shuffle");
    if (std::holds_alternative<draw_step>(step)) depends_on_epoch("draw");
  }
}

std::uint64_t opening::round() const noexcept {
  return first == 0 ? epoch : random(epoch, first)();
}

void require_own_position(std::uint64_t place, const opening& run) {
  if (place >= run.span)
    throw error(errc::limit_exceeded, "number an item",
                "as one of several sources it may have " + std::to_string(run.span) + " items");
}

visit_order begin_order(std::vector<order_step> steps, std::uint64_t items, std::string identity,
                        const opening& run) {
  auto& progress = run.run->progress();
  auto texts = texts_of(steps);
  auto part = part_of(steps);
  visit_order order(std::move(steps), items, run.round());
  if (progress.resumed()) order = order.rest(progress.undelivered(), run.first);
  progress.begin({.begin = run.first,
                  .items = items,
                  .order = std::move(texts),
                  .identity = std::move(identity),
                  .rank = part.rank,
                  .world = part.world,
                  .first = run.first + order.first_position(),
                  .own = order.size()});
  return order;
}

void opening::throw_if_stopped(std::string_view doing) const {
  if (stop.stop_requested()) throw error(errc::stopped, doing);
}

std::exception_ptr opening::failure(stage_counters& counters, const failure_policy& policy,
                                    std::string item, const lineage& origin) const {
  if (stop.stop_requested()) return std::current_exception();
  return run->fail(counters, policy, std::move(item), origin);
}

std::exception_ptr run_state::fail(stage_counters& stage, const failure_policy& policy,
                                   std::string item, const lineage& origin, unsigned attempts) {
  auto cause = std::current_exception();
  if (has_ended_by(cause)) return cause;
  auto failure = [&](std::error_code code, std::string why) {
    stage.failed.fetch_add(1, std::memory_order_relaxed);
    if (item.empty() && !origin.empty()) item = "item " + to_string(origin);
    record({stage.name(), item, why, attempts, origin, epoch()});
    bool pass = policy.substitutes || policy.finally.value_or(options_.on_error) == on_error::skip;
    bool too_many = pass && over_budget(stage, policy);
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

void run_state::record(failure_record failure) {
  bool begin = false;
  {
    std::lock_guard lock(mutex_);
    ++failed_;
    if (options_.on_failure || failure_log_.is_open()) {
      unreported_.push_back(failure);
      begin = !std::exchange(reporting_, true);
    }
    failures_.push_back(std::move(failure));
    if (failures_.size() > most_failures) failures_.pop_front();
  }
  if (!begin) return;
  try {
    children_.start(report_failures());
  } catch (...) {
    std::lock_guard lock(mutex_);
    reporting_ = false;
    throw;
  }
}

// One child at a time, so that listeners hear of one failure at a time, in their order; and a
// child, so that the consumer sees the end of the run after the last of them.
task<> run_state::report_failures() {
  while (auto next = next_unreported()) report(*next);
  co_return;
}

std::optional<failure_record> run_state::next_unreported() {
  std::lock_guard lock(mutex_);
  reporting_ = !unreported_.empty();
  if (!reporting_) return std::nullopt;
  std::optional<failure_record> next(std::move(unreported_.front()));
  unreported_.pop_front();
  return next;
}

void run_state::report(const failure_record& failure) noexcept {
  try {
    if (failure_log_.is_open() && !(failure_log_ << to_json(failure) << std::endl))
      raise(errno, "write " + options_.failure_log);
    if (options_.on_failure) options_.on_failure(failure);
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

void run_state::note_epoch_dependent(std::string_view stage) {
  std::lock_guard lock(mutex_);
  if (epoch_dependent_.empty()) epoch_dependent_ = stage;
}

std::string run_state::epoch_dependent() const {
  std::lock_guard lock(mutex_);
  return epoch_dependent_;
}

void run_state::warn(const std::string& text) const {
  if (options_.on_warning)
    options_.on_warning(text);
  else
    std::fputs(("lade: " + text + "\n").c_str(), stderr);
}

// The surroundings are part of the stage.
static task<> run_beside(std::shared_ptr<const void>, const context& surroundings, task<> work) {
  co_await under(surroundings, std::move(work));
}

void run_state::start(std::shared_ptr<const void> stage, const context& surroundings, task<> work) {
  children_.start(run_beside(std::move(stage), surroundings, std::move(work)));
}

static bool is_stop(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const error& e) {
    return e.code() == errc::stopped;
  } catch (...) {
    return false;
  }
}

std::exception_ptr run_state::outcome(const std::exception_ptr& failure) const {
  std::lock_guard lock(mutex_);
  if (listener_failure_) return listener_failure_;
  auto first = std::ranges::find(final_failures_, failure, &final_failure::thrown);
  if (first == final_failures_.end())
    return is_stop(failure) ? std::make_exception_ptr(error(errc::stopped, "run")) : failure;
  if (final_failures_.size() == 1) return failure;
  std::vector<stage_error> others;
  for (auto& each : final_failures_)
    if (&each != &*first) others.push_back(each.failure);
  return std::make_exception_ptr(stage_error(first->failure, std::move(others)));
}

bool run_state::over_budget(const stage_counters& stage, const failure_policy& policy) {
  std::lock_guard lock(mutex_);
  return exceeds(policy.budget, stage.failed, stage.in) ||
         exceeds(options_.error_budget, failed_, items_begun());
}

// Parts of one item are items of their own, which the stage behind them takes.
std::uint64_t run_state::items_begun() const noexcept {
  std::uint64_t of_sources = 0;
  std::uint64_t most_taken = 0;
  for (auto& stage : stages_) {
    std::uint64_t out = stage.out;
    std::uint64_t in = stage.in;
    if (in == 0) of_sources += out;
    most_taken = std::max(most_taken, in);
  }
  return std::max(of_sources, most_taken);
}

std::string run_state::name_of(const stage_counters* stage) const {
  std::lock_guard lock(mutex_);
  for (auto& each : stages_)
    if (&each == stage) return each.name();
  return {};
}

std::string run_state::name_of(const stage_key& stage) const {
  std::lock_guard lock(mutex_);
  auto known = opened_.find(stage);
  return known == opened_.end() ? std::string() : known->second->name();
}

std::vector<std::string> run_state::stage_names() const {
  std::lock_guard lock(mutex_);
  std::vector<std::string> names;
  for (auto stage = stages_.rbegin(); stage != stages_.rend(); ++stage)
    names.push_back(stage->groups.empty() ? stage->given_name()
                                          : stage->given_name() + ' ' + stage->groups);
  return names;
}

std::vector<failure_record> run_state::failures() const {
  std::lock_guard lock(mutex_);
  return {failures_.begin(), failures_.end()};
}

bool run_state::short_of_memory(std::uint64_t items) const {
  std::uint64_t bytes = 0;
  {
    std::lock_guard lock(mutex_);
    for (auto& stage : stages_) bytes += stage.allocated.load(std::memory_order_relaxed);
  }
  return runtime_.memory().would_wait(bytes / items);
}

void run_state::watch(const overviewed& stage) {
  std::lock_guard lock(mutex_);
  watched_.push_back(&stage);
}

void run_state::unwatch(const overviewed& stage) noexcept {
  std::lock_guard lock(mutex_);
  std::erase(watched_, &stage);
}

std::string run_state::overview() const {
  auto memory = runtime_.memory().stats();
  auto now = statistics();
  auto text = table(now) + verdict(now) + "\nMemory: " + std::to_string(memory.used_bytes) +
              " of " + std::to_string(memory.limit_bytes) + " bytes are in use.\n";
  std::lock_guard lock(mutex_);
  auto at = clock::now();
  for (auto stage = watched_.rbegin(); stage != watched_.rend(); ++stage)
    text += (*stage)->overview(at);
  return text;
}

lade::state run_state::state() const {
  auto result = progress_.now();
  result.epoch = epoch();
  result.seed = options_.seed;
  return result;
}

run_statistics run_state::statistics() const {
  run_statistics result;
  auto ended = ended_.load(std::memory_order_relaxed);
  auto now = ended == clock::time_point() ? clock::now() : ended;
  result.threads = runtime_.pool().size();
  result.cpus = available_cpus();
  result.sink_wait = sink.starving.until(now);
  result.sink_blocked = sink.output_wait.until(now);
  result.memory_wait = memory_wait.until(now);
  result.sink_waits = sink.starving.ended();
  result.delivered = sink.out;
  auto first = first_item_.load(std::memory_order_relaxed);
  std::lock_guard lock(mutex_);
  result.elapsed = now - started_;
  if (first != clock::time_point()) result.first_item = first - started_;
  for (auto stage = stages_.rbegin(); stage != stages_.rend(); ++stage)  // added from the sink on
    result.stages.push_back(stage->snapshot(now));
  return result;
}

}  // namespace detail
}  // namespace lade
