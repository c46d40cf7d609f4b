#include <lade/autotune.hpp>
#include <lade/error.hpp>
#include <lade/from_shards.hpp>
#include <lade/random.hpp>
#include <lade/support/require.hpp>

#include <utility>

#include <fmt/format.h>

namespace lade::detail {

sharded_options::sharded_options(const from_shards_options& given, std::uint64_t shards)
    : given_(given), name_(given.name) {
  auto [rank, world, ignored] = given.shard;
  if (rank >= world || shards < world)
    throw error(errc::invalid_argument, name_,
                fmt::format("rank {} of {} for {} shards", rank, world, shards));
  if (given.concurrency == automatic)
    throw error(errc::invalid_argument, name_,
                "concurrency is automatic, which is for other stages: set a number");
  support::require_count(name_, "concurrency", given.concurrency, {.least = 1});
  support::require_count(name_, "buffer", given.buffer);
  given_.name = {};  // its text may die
}

node_facts sharded_options::facts() const {
  auto facts = node_facts::source(name_).made_by("from_shards").holding(most_held()).with(policy());
  if (given_.shuffle)
    for (auto& text : texts_of({order_step::shuffle(given_.seed)}))
      facts = std::move(facts).with("order", text);
  facts = std::move(facts).with("shards",
                                fmt::format("{} of {}", given_.shard.rank, given_.shard.world));
  facts = std::move(facts).with(policy());
  if (given_.concurrency == 1) return facts;
  facts = std::move(facts).on(stage_executor::cpu_pool).with("concurrency", given_.concurrency);
  if (given_.buffer != from_shards_options().buffer)
    facts = std::move(facts).with("buffer", given_.buffer);
  return facts;
}

// Without a queue, an open shard holds the item that it yields and the next one.
std::uint64_t sharded_options::most_held() const {
  return given_.concurrency == 1 ? 2 : detail::most_held(ahead());
}

shard_positions::shard_positions(std::uint64_t place, const open_context& run)
    : first_(run.pass->first + place * span) {
  require_own_position((place + 1) * span - 1, run);
}

std::uint64_t shard_positions::next() {
  if (used_ + 1 == span)
    throw error(errc::limit_exceeded, "number an item", "its shard has too many");
  return first_ + used_++;
}

shards_of_run::shards_of_run(counted_ptr<const shard_list> list, sharded_options options,
                             const open_context& run)
    : list_(std::move(list)),
      options_(std::move(options)),
      by_all_(run.progress().delivered_by_all()),
      here_(run.progress().delivered_here()) {}

std::uint64_t shards_of_run::shard_at(std::uint64_t place, std::uint64_t round) const {
  return options_->shuffle ? permute(place, list_->size(), random(options_->seed, round)()) : place;
}

assignment shards_of_run::sharding_in(const open_context& run) const {
  auto order = options_->shuffle
                   ? fmt::format("{} shards shuffled by {}", list_->size(), options_->seed)
                   : std::string("shards in their order");
  return {.begin = run.pass->first,
          .order = {std::move(order)},
          .identity = list_->identity(),
          .rank = options_->shard.rank,
          .world = options_->shard.world,
          .first = run.pass->first,
          .shard_span = shard_positions::span};
}

async_generator<listed_shard> shards_of_run::remaining(counted_ptr<const shards_of_run> self,
                                                       open_context run, stage_counters& counters,
                                                       open_input input) {
  try {
    run.progress().begin(self->sharding_in(run));
    auto [rank, world, ignored] = self->options_->shard;
    std::uint64_t turn = 0;
    for (std::uint64_t place = 0; place < self->list_->size(); ++place) {
      run.throw_if_stopped(counters);
      shard_positions positions(place, run);
      if (self->by_all_.contains(positions)) continue;
      if (turn++ % world != rank || self->here_.contains(positions)) continue;
      auto number = self->shard_at(place, run.round());
      listed_shard listed{place, number, self->list_->name(number)};
      co_yield listed;
    }
    input.end();
  } catch (...) {
    std::rethrow_exception(run.failure(counters, {on_error::fail}, {}, {}));
  }
}

void shards_of_run::pass(std::exception_ptr failure, const listed_shard& shard,
                         const open_context& run, stage_counters& counters) const {
  try {
    std::rethrow_exception(std::move(failure));
  } catch (...) {
    lineage first(shard_positions(shard.place, run).first());
    failure = run.failure(counters, options_.policy(), name_of(shard), first);
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace lade::detail
