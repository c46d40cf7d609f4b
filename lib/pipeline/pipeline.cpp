#include <lade/detail/coroutines/long_chain.hpp>
#include <lade/detail/observability/profiler.hpp>
#include <lade/detail/pipeline/node.hpp>
#include <lade/error.hpp>
#include <lade/hooks.hpp>
#include <lade/pipeline.hpp>

#include <cstddef>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace lade::detail {

// Enters the hooks of a stage, and leaves them when it is destroyed: at the end of the stage, or
// when its generator is destroyed early. An exception of a hook ends the run.
class stage_visit {
 public:
  stage_visit(std::shared_ptr<run_state> run, std::string stage)
      : run_(std::move(run)), stage_(std::move(stage)) {
    try {
      for (auto* each : hooks()) {
        each->enter_stage(stage_);
        ++entered_;
      }
    } catch (...) {
      run_->end_by(std::current_exception());
    }
  }
  stage_visit(const stage_visit&) = delete;
  ~stage_visit() {
    while (entered_ > 0) leave(*hooks()[--entered_]);
  }

  void failed(std::exception_ptr failure) noexcept { failure_ = std::move(failure); }

 private:
  const std::vector<run_hooks*>& hooks() const noexcept { return run_->options().hooks.all(); }

  void leave(run_hooks& hooks) const noexcept {
    try {
      hooks.leave_stage(stage_, failure_);
    } catch (...) {
      run_->end_by(std::current_exception());
    }
  }

  std::shared_ptr<run_state> run_;
  std::string stage_;
  std::exception_ptr failure_;
  std::size_t entered_ = 0;
};

static generator visit_stage(generator items, std::shared_ptr<run_state> run, std::string name) {
  stage_visit visit(std::move(run), std::move(name));
  try {
    while (auto* item = co_await items.next()) co_yield item;
  } catch (...) {
    visit.failed(std::current_exception());
    throw;
  }
}

static generator with_hooks(generator items, const open_context& run) {
  if (run.run->options().hooks.all().empty()) return items;
  if (!run.at->facts().is_counted()) return items;
  return visit_stage(std::move(items), run.run, run.at->name);
}

static generator first_items(generator items, std::uint64_t count) {
  for (; count > 0; --count) {
    auto* item = co_await items.next();
    if (!item) co_return;
    co_yield item;
  }
}

static task<std::uint64_t> count_items(generator items) {
  std::uint64_t count = 0;
  while (co_await items.next()) ++count;
  co_return count;
}

generator node_base::open_in(const open_context& run) const {
  auto here = run.of(*this);
  return run.run->profiling() ? open_profiled(here) : open_stage(here);
}

task<std::uint64_t> node_base::count(const open_context& run) const {
  return count_items(open_in(run));
}

generator node_base::open_stage(const open_context& run) const {
  auto open = [&] { return with_hooks(begin(run), run); };
  return run.at->depth % longest_chain == 0 ? break_chain(open) : open();
}

// Opens a stage in a run of a profile. Sources are cut short. The inputs of the stage on trial make
// all items before it starts.
generator node_base::open_profiled(const open_context& run) const {
  auto& profiling = *run.run->profiling();
  auto before = ++profiling.opened();
  auto items = open_stage(run);
  bool is_source = profiling.opened() == before && !facts_.is_path();
  if (is_source) items = first_items(std::move(items), profiling.source_items());
  if (profiling.is_on_trial()) {
    if (!profiling.feeds_trial(*run.at)) return items;
    return make_all(std::move(items), counted_ptr(this), run);
  }
  if (!run.path && facts_.is_counted()) profiling.add({counted_ptr(this), run.at->name});
  return items;
}

// Consumes all items before it yields the first one.
generator node_base::make_all(generator items, counted_ptr<const node_base> of, open_context run) {
  std::vector<moved_with_lineage> all;
  while (true) {
    auto next = items.next();
    next.set_apart();
    auto* item = co_await next;
    if (!item) break;
    all.push_back({of->move(item), items.origin()});
  }
  run.run->profiling()->record_begin(run.run->statistics());
  for (auto& each : all) {
    run.throw_if_stopped("profile");
    address_with_lineage yielded{each.origin, each.what.item};
    co_yield yielded;
  }
}

void refuse_moved_pipeline() {
  throw error(errc::invalid_argument, "use a pipeline", "it has been moved from");
}

// Whether this run is the first one that makes the same choices as an earlier one.
bool node_base::repeats_choices(std::optional<std::uint64_t> seed) const {
  std::lock_guard lock(mutex_);
  if (runs_without_epoch_ == 0) seed_ = seed;
  return seed == seed_ && ++runs_without_epoch_ == 2;
}

void node_base::warn_of_same_epoch(run_state& run) {
  if (run.options().epoch) return;
  std::string again;
  for (auto& stage : run.epoch_dependent()) {
    auto& step = *static_cast<const node_base*>(stage.step);
    if (step.repeats_choices(stage.seed) && again.empty()) again = stage.name;
  }
  if (again.empty()) return;
  run.warn("a pipeline runs for the second time without an epoch: " + again +
           " makes the same choices again. Give every run its own: {.epoch = epoch}.");
}

}  // namespace lade::detail
