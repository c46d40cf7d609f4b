#include "shard_reading.hpp"

#include <lade/detail/common/require.hpp>
#include <lade/error.hpp>
#include <lade/random.hpp>
#include <lade/this_context.hpp>

#include <fmt/format.h>

namespace lade::detail {

shard_list::shard_list(io::shards shards, const io::from_shards_options& options)
    : shards_(std::move(shards)), options_(options), read_(io::read_tar.with(options.read)) {
  auto [rank, world, ignored] = options.shard;
  if (rank >= world || size() < world)
    throw error(errc::invalid_argument, "from_shards",
                fmt::format("rank {} of {} for {} shards", rank, world, size()));
  require_count("from_shards", "concurrency", options.concurrency, {.least = 1});
  require_count("from_shards", "buffer", options.buffer);
  options_.read = {};  // its views may die
  name_digest names;
  for (const auto& each : shards_.names()) names.add(shards_.identity_of(sample(each)));
  identity_ = names.text();
}

const std::string& shard_list::at(std::uint64_t position, std::uint64_t round) const {
  auto shard =
      options_.shuffle ? permute(position, size(), random(options_.seed, round)()) : position;
  return shards_.names()[shard];
}

dealing shard_list::sharding_in(const open_context& run) const {
  auto order = options_.shuffle ? "shards shuffled by " + std::to_string(options_.seed)
                                : std::string("shards in their order");
  return {.begin = run.pass->first,
          .order = {std::move(order)},
          .identity = identity_,
          .rank = options_.shard.rank,
          .world = options_.shard.world,
          .first = run.pass->first,
          .shard_span = shard_positions::span};
}

std::uint64_t shard_positions::next() {
  if (used_ + 1 == span)
    throw error(errc::limit_exceeded, "number a sample", "its shard has too many");
  return first_ + used_++;
}

shard_reading::shard_reading(std::shared_ptr<const shard_list> list, const open_context& run)
    : list_(std::move(list)),
      ahead_{.concurrency = list_->options().concurrency, .buffer = list_->options().buffer},
      by_all_(run.progress().delivered_by_all()),
      here_(run.progress().delivered_here()) {}

async_generator<listed_shard> shard_reading::remaining_shards(counted_ptr<const shard_reading> self,
                                                              open_context run,
                                                              stage_counters& counters,
                                                              open_input input) {
  try {
    auto& all = *self->list_;
    run.progress().begin(all.sharding_in(run));
    auto [rank, world, ignored] = all.options().shard;
    std::uint64_t turn = 0;
    for (std::uint64_t position = 0; position < all.size(); ++position) {
      run.throw_if_stopped(counters);
      shard_positions positions(position, run);
      if (self->by_all_.contains(positions)) continue;
      if (turn++ % world != rank || self->here_.contains(positions)) continue;
      listed_shard listed{position, &all.at(position, run.round())};
      co_yield listed;
    }
    input.end();
  } catch (...) {
    std::rethrow_exception(run.failure(counters, {on_error::fail}, {}, {}));
  }
}

// In the context of a stage that reads several shards, which is stopped with the stage. One sample
// is held back until it is known whether it is the last.
async_generator<sample> shard_reading::parts(listed_shard shard, const kept_name<listed_shard>&,
                                             lineage, open_context run,
                                             stage_counters& counters) const {
  if (run.run->failures().is_behind()) co_await run.run->failures().room();
  auto& current = co_await this_context_reference();
  run = run.until(current.stop);
  shard_positions positions(shard.position, run);
  held<int> end(0, lineage(positions.last()));
  std::exception_ptr failure;
  auto samples = remaining_samples(shard, run, counters, positions);
  auto waiting = co_await samples.next().deferring(failure).held();
  while (waiting) {
    auto next = co_await samples.next().deferring(failure).held();
    bool is_over = !next && !failure;
    if (is_over && positions.is_latest(waiting->origin().latest())) waiting->join(end);
    co_yield std::move(*waiting);
    waiting = std::move(next);
  }
  if (failure) pass(failure, shard, run, counters);
}

async_generator<sample> shard_reading::remaining_samples(listed_shard shard, open_context run,
                                                         stage_counters& counters,
                                                         shard_positions& positions) const {
  auto samples = list_->read(*shard.name);
  while (auto* next = co_await samples.next()) {
    run.throw_if_stopped(counters);
    auto position = positions.next();
    if (here_.contains(position) || run.leaves_out(position)) continue;
    positioned<sample> yielded{position, *next};
    co_yield yielded;
  }
}

void shard_reading::pass(std::exception_ptr failure, const listed_shard& shard,
                         const open_context& run, stage_counters& counters) const {
  try {
    std::rethrow_exception(std::move(failure));
  } catch (...) {
    lineage first(shard_positions(shard.position, run).first());
    failure = run.failure(counters, list_->policy(), name_of(shard), first);
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace lade::detail
