#include <lade/description.hpp>
#include <lade/detail/pipeline/node.hpp>
#include <lade/equal_steps.hpp>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

namespace lade {

namespace detail {

static bool has_uneven_shards(const node_base& in) {
  const std::pair<std::string, std::string> uneven{"remainder", "keep"};
  auto pipeline = describe(in);
  return std::ranges::any_of(pipeline.stages, [&](const stage_description& stage) {
    return std::ranges::find(stage.options, uneven) != stage.options.end();
  });
}

std::uint64_t steps_of_epoch(const node_base& in, const equal_steps_options& options) {
  if (options.steps) return *options.steps;
  const auto& size = in.facts().size();
  if (!size)
    throw error(errc::invalid_argument, "equal_steps",
                "the number of steps is not known before a run: list the files of a listing first, "
                "from(files.list_all()), or pass equal_steps_options::steps");
  if (has_uneven_shards(in))
    throw error(errc::invalid_argument, "equal_steps",
                "with remainder::keep a rank may have a step more than others: pass the steps of "
                "rank 0 as equal_steps_options::steps");
  return *size;
}

node_facts equal_steps_facts(node_ptr in, std::uint64_t steps) {
  return node_facts::behind(std::move(in), "equal_steps")
      .holding(0)
      .with("steps", steps)
      .mixing_parts("equal_steps")
      .counting_steps()
      .ending_early()
      .yielding(cardinality::one, steps);
}

step_count::step_count(const open_context& run, std::uint64_t steps,
                       std::optional<std::uint64_t> of_input)
    : is_whole_(of_input && steps >= *of_input) {
  auto before = run.progress().begin_steps(steps);
  left_ = steps - before.taken;
  repeats_before_ = before.repeated;
}

void step_count::fail_without_items() const {
  throw error(
      errc::failed, "repeat an item of this rank",
      fmt::format("it has none, or all have failed, and {} more steps are to be made", left_));
}

}  // namespace detail

end_together_stage::end_together_stage(any_rank_ended any_ended)
    : any_ended_(std::move(any_ended)) {
  if (!*any_ended_) throw error(errc::invalid_argument, "end_together", "there is no function");
}

bool end_together_stage::is_over(const any_rank_ended& any_ended, bool ended) {
  bool over = any_ended(ended);
  if (ended && !over)
    throw error(errc::invalid_argument, "ask whether a rank has ended",
                "the function returned false although this rank has ended");
  return over;
}

}  // namespace lade
