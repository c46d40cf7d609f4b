#include <lade/detail/pipeline/run_state.hpp>
#include <lade/support/require.hpp>

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include <fmt/format.h>

namespace lade::detail {

// A run that resumes from a state (a checkpoint) takes its epoch and seed from there.
static run_options options_of_rest(run_options options) {
  if (options.state) {
    options.epoch = options.state->epoch;
    options.seed = options.state->seed;
  }
  return options;
}

static void require_run(const run_options& options) {
  if (options.ready != automatic)
    support::require_count("run", "ready", options.ready, {.least = 1});
  require_retry("run", options.retry);
  require_budget("run", options.error_budget);
  require_tuning("run", options.tune);
  support::require_duration("run", "stall.after", options.stall.after);
  if (options.report.to)
    support::require_duration("run", "report.every", options.report.every,
                              std::chrono::nanoseconds(1));
}

run_state::run_state(lade::runtime& where, const run_options& options, scope& children,
                     const run_state* before, profiler* profiling)
    : runtime_(where),
      options_(options_of_rest(options)),
      tuned_(before ? before->tuned_ : std::make_shared<tuned_stages>()),
      progress_(std::exchange(options_.state, std::nullopt), options_.require_state,
                options_.other_data),
      profiling_(profiling),
      arrows_(options_.trace),
      children_(children),
      failures_((require_run(options_), options_), stages_, children) {
  unsaved_.refuse("its items are repeats");
  auto& pool = runtime_.pool();
  auto automatic_threads = cpus_to_use(options_.tune, pool.size());
  if (automatic_threads < pool.size())
    automatic_share_ = std::make_shared<pool_share>(pool, automatic_threads);
}

run_state::~run_state() = default;

void run_state::lacks_memory_to_take() { raise(ENOMEM, "take an item of a run"); }

context run_state::make_context(std::stop_token stop) noexcept {
  context result;
  result.runtime = &runtime_;
  result.home = &runtime_.pool();
  result.stop = std::move(stop);
  result.memory = &runtime_.memory();
  result.claim = &claim_;
  result.run = this;
  result.epoch = epoch();
  result.trace = options_.trace;
  return result;
}

void run_state::begin() noexcept { output.next_starved.count_from(clock_.begin()); }

void run_state::count_delivered() noexcept {
  increment(output.out);
  clock_.record_delivery();
}

void run_state::end() noexcept {
  clock_.end();
  over.request_stop();
}

void run_state::record_epoch_dependent(const void* step, std::string_view name,
                                       std::optional<std::uint64_t> seed) {
  std::lock_guard lock(mutex_);
  if (std::ranges::find(epoch_dependent_, step, &epoch_chooser::step) == epoch_dependent_.end())
    epoch_dependent_.push_back({step, std::string(name), seed});
}

std::vector<run_state::epoch_chooser> run_state::epoch_dependent() const {
  std::lock_guard lock(mutex_);
  return epoch_dependent_;
}

bool run_state::is_first_start(const void* key) {
  std::lock_guard lock(mutex_);
  if (std::ranges::find(started_, key) != started_.end()) return false;
  started_.push_back(key);
  return true;
}

void run_state::warn(const std::string& text) const {
  if (options_.on_warning)
    options_.on_warning(text);
  else
    std::fputs(fmt::format("lade: {}\n", text).c_str(), stderr);
}

std::string run_state::overview() const {
  auto memory = runtime_.memory().stats();
  auto now = statistics();
  auto text = fmt::format("{}{}\nMemory: {} of {} bytes are in use.\n", table(now), verdict(now),
                          memory.used_bytes, memory.limit_bytes);
  return text + stages_.overviews(clock::now());
}

lade::state run_state::state() const {
  auto result = progress_.now();
  result.epoch = epoch();
  result.seed = options_.seed;
  return result;
}

run_statistics run_state::statistics() const {
  run_statistics result;
  const auto now = clock_.now();
  result.threads = runtime_.pool().size();
  result.cpus = available_cpus();
  result.consumer_wait = output.next_starved.until(now);
  result.output_wait = output.output_wait.until(now);
  result.memory_wait = output.memory_wait.until(now);
  result.consumer_waits = output.next_starved.ended();
  result.output_waits = output.output_wait.ended();
  result.depth = output.depth.now();
  result.delivered = output.out;
  result.stages = stages_.statistics(now);
  result.elapsed = clock_.elapsed(now);
  result.first_item = clock_.first_item();
  return result;
}

}  // namespace lade::detail
