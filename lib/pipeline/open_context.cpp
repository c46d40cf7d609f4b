#include <lade/detail/coroutines/is_stop.hpp>
#include <lade/detail/observability/profiler.hpp>
#include <lade/detail/pipeline/open_context.hpp>

#include <bit>
#include <utility>

#include <fmt/format.h>

namespace lade::detail {

open_context::open_context(std::shared_ptr<run_state> of_run, std::stop_token until)
    : run(std::move(of_run)),
      at(&run->plan().end()),
      stop(std::move(until)),
      wanted(run->wanted()),
      pass(std::make_shared<const source_pass>(
          source_pass{.epoch = run->epoch(), .seed = run->options().seed})) {}

open_context open_context::of(const node_base& input) const {
  auto result = *this;
  if (at->node != &input) result.at = &at->input(input);
  return result;
}

open_context open_context::branch(std::size_t i) const {
  const auto count = at->inputs.size();
  const auto share = pass->span / std::bit_ceil(count);
  if (share == 0)
    throw error(errc::limit_exceeded, "open a source", "it is one of too many, inside of others");
  auto sources = *pass;
  sources.span = share;
  sources.first += i * share;
  auto result = over(std::move(sources));
  result.at = at->inputs[i];
  return result;
}

open_context open_context::until(std::stop_token requested) const {
  auto result = *this;
  result.stop = std::move(requested);
  return result;
}

open_context open_context::taken_by(std::shared_ptr<const demand> taker) const {
  auto result = *this;
  result.wanted = std::move(taker);
  return result;
}

open_context open_context::over(source_pass sources) const {
  auto result = *this;
  result.pass = std::make_shared<const source_pass>(std::move(sources));
  return result;
}

open_context open_context::in(std::shared_ptr<const path_place> opened) const {
  auto result = *this;
  result.path = std::move(opened);
  return result;
}

choice_log open_context::choosing(const std::string& what) const {
  plan::record_indivisible(*at);
  return progress().choosing(what);
}

void open_context::refuse_state(const std::string& why) const {
  progress().refuse(why);
  plan::record_indivisible(*at);
}

stage_counters& open_context::add_stage(std::size_t inputs) const {
  auto& counters = run->stages().add(*at, inputs);
  if (!at->groups.empty()) run->stages().record_groups(counters, at->groups);
  return counters;
}

void open_context::depends_on_epoch(std::string_view chooser,
                                    std::optional<std::uint64_t> of_run) const {
  if (!pass->kept) run->record_epoch_dependent(at->node, chooser, of_run);
}

void open_context::depends_on_epoch(const std::vector<order_step>& steps) const {
  for (auto& step : steps) {
    if (step.what == order_step::kind::shuffle) depends_on_epoch("shuffle");
    if (step.what == order_step::kind::draw) depends_on_epoch("draw");
  }
}

std::uint64_t open_context::round() const noexcept {
  return pass->round == 0 ? pass->epoch : random(pass->epoch, pass->round)();
}

std::optional<unsigned> open_context::concurrency_of_trial() const {
  const auto* profiling = run->profiling();
  return profiling ? profiling->concurrency_of(*at) : std::nullopt;
}

void require_own_position(std::uint64_t place, const open_context& run) {
  const auto most = run.pass->span;
  if (place >= most)
    throw error(
        errc::limit_exceeded, "number an item",
        fmt::format("a source of this run may have {} items: lower the counts of skip, repeat "
                    "and shard, or the number of inputs inside of others",
                    most));
}

visit_order begin_order(std::vector<order_step> steps, std::uint64_t items, std::string identity,
                        const open_context& run) {
  auto& progress = run.progress();
  const auto begin = run.pass->first;
  auto texts = texts_of(steps);
  auto part = part_of(steps);
  visit_order order(std::move(steps), items, run.round());
  if (progress.resumed()) order = order.rest(progress.undelivered(), begin);
  progress.begin({.begin = begin,
                  .items = items,
                  .order = std::move(texts),
                  .identity = std::move(identity),
                  .rank = part.rank,
                  .world = part.world,
                  .first = begin + order.first_position(),
                  .own = order.size()});
  return order;
}

void open_context::throw_if_stopped(std::string_view doing) const {
  if (stop.stop_requested()) throw error(errc::stopped, doing);
}

// A call that a stop has interrupted may throw any exception.
static std::exception_ptr as_stop(std::exception_ptr thrown, const std::string& stage) {
  if (is_stop(thrown)) return thrown;
  return std::make_exception_ptr(error(errc::stopped, stage));
}

std::exception_ptr open_context::failure(stage_counters& counters, const failure_policy& policy,
                                         std::string item, const lineage& origin) const {
  if (stop.stop_requested()) return as_stop(std::current_exception(), counters.name());
  return run->failures().fail(counters, policy, std::move(item), origin);
}

}  // namespace lade::detail
