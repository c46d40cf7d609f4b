#include <lade/detail/run_state.hpp>

#include <bit>
#include <variant>

namespace lade::detail {

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
  if (parts_behind) progress().expect_groups();
  auto result = *this;
  result.mixes_parts = how;
  return result;
}

opening opening::reordering(const char* how) const {
  if (parts_behind)
    refuse_state(std::string(how) + " is before a stage that makes several items of one");
  return mixing_parts(how);
}

opening opening::making_parts(const std::string& how, bool tells_members) const {
  if (mixes_parts)
    refuse_state(how + " makes several items of one before " + mixes_parts);
  else
    progress().expect_parts();
  auto result = *this;
  result.parts_behind = true;
  result.members_unknown = !tells_members;
  result.keeps_batches_whole = true;
  return result;
}

opening opening::pairing() const {
  auto result = *this;
  result.keeps_batches_whole = true;
  return result;
}

opening opening::batching_in(memory_resource& memory) const {
  auto result = *this;
  result.batch_memory = &memory;
  return result;
}

void opening::begin_source(std::uint64_t rank, std::uint64_t world) const {
  if (split) refuse_state("a source is in a path of tee, route or route_batches");
  progress().announce(rank, world);
}

void opening::grouping(stage_counters& counters, std::size_t size, std::size_t step) const {
  if (!parts_behind) return;
  if (members_unknown)
    refuse_state(
        "items made of batches are taken apart whose size() does not count members, or "
        "that have no size(): a batch of other members would not be known");
  auto groups = "of " + std::to_string(size);
  if (step != size) groups += " in steps of " + std::to_string(step);
  run->note_groups(counters, std::move(groups));
}

void opening::refuse_state(const std::string& why) const {
  progress().refuse(why);
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
  auto& progress = run.progress();
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

}  // namespace lade::detail
