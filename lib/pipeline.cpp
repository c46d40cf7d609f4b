#include <lade/detail/long_chain.hpp>
#include <lade/detail/node.hpp>
#include <lade/detail/profiler.hpp>
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

// The hooks of a run around a stage. One that is left early is told when it is destroyed.
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

static generator with_hooks(generator items, const opening& run) {
  if (run.run->options().hooks.all().empty()) return items;
  auto name = run.run->name_of({run.stage, run.inside_of});
  return name.empty() ? std::move(items) : visit_stage(std::move(items), run.run, std::move(name));
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

generator node_base::open_in(const opening& run) const {
  return run.profiling ? open_profiled(run) : open_stage(run);
}

task<std::uint64_t> node_base::count(const opening& run) const { return count_items(open_in(run)); }

generator node_base::open_stage(const opening& run) const {
  auto here = run.of(this);
  auto open = [&] { return with_hooks(begin(here), here); };
  if (++here.recursion < longest_chain) return open();
  here.recursion = 0;
  return break_chain(open);
}

// One stage with all that it takes made before. A source is cut short.
generator node_base::open_alone(const opening& run) const {
  auto before = run.profiling->opened();
  auto items = open_stage(run);
  if (run.profiling->opened() > before) return items;
  return first_items(std::move(items), run.profiling->source_items());
}

generator node_base::open_profiled(const opening& from) const {
  auto& profiling = *from.profiling;
  auto run = from;
  stage_key key{this, from.inside_of};
  run.hoards = from.hoards && !profiling.knows(key);
  if (!run.hoards) run.concurrency.reset();
  auto before = ++profiling.opened();
  auto items = open_stage(run);
  bool is_source = profiling.opened() == before && !from.split;  // and not the way into a path
  if (is_source) items = first_items(std::move(items), profiling.source_items());
  counted_ptr self(this);
  if (from.hoards)
    return run.hoards ? std::move(items) : make_all(std::move(items), std::move(self), run);
  auto name = from.split ? std::string() : from.run->name_of(key);  // paths are parts
  if (!name.empty())
    profiling.add({key, std::move(name),
                   [self](const opening& alone) { return count_items(self->open_alone(alone)); }});
  return items;
}

// Gives the first item when all are there.
generator node_base::make_all(generator items, counted_ptr<const node_base> of, opening run) {
  std::vector<moved_with_lineage> all;
  while (true) {
    auto next = items.next();
    next.take_apart();
    auto* item = co_await next;
    if (!item) break;
    all.push_back({of->move(item), items.origin()});
  }
  run.profiling->note_begin(run.run->statistics());
  for (auto& each : all) {
    run.throw_if_stopped("profile");
    address_with_lineage yielded{each.origin, each.what.item};
    co_yield yielded;
  }
}

counting_run counting(counted_ptr<const node_base> last) {
  return [last = std::move(last)](const opening& run) { return last->count(run); };
}

void refuse_moved_pipeline() {
  throw error(errc::invalid_argument, "use a pipeline", "it has been moved from");
}

// Whether a run does, for the first time.
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
