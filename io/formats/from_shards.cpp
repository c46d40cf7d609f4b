#include <lade/io/formats/from_shards.hpp>

#include <lade/detail/coroutines/owner.hpp>
#include <lade/detail/stages/concurrent_flat_map.hpp>

#include <string>

#include <fmt/format.h>

#include "shard_reading.hpp"

namespace lade::detail {

using reading_ptr = counted_ptr<const shard_reading>;

static async_generator<sample> read_in_turn(reading_ptr reading, open_context run,
                                            stage_counters& counters, open_input input) {
  auto shards = shard_reading::remaining_shards(reading, run, counters, std::move(input));
  kept_name<listed_shard> name;
  while (auto* shard = co_await shards.next()) {
    increment(counters.in);
    auto samples = reading->parts(*shard, name, lineage(), run, counters);
    while (auto* next = co_await samples.next()) {
      count_out(counters, *next);
      co_yield *next;
    }
  }
}

static async_generator<sample> read_ahead(const reading_ptr& reading, const open_context& run,
                                          stage_counters& counters, unsigned concurrency,
                                          open_input input) {
  using stage = concurrent_flat_map<listed_shard, sample, shard_reading>;
  owner several(std::make_shared<stage>(run, counters, reading, concurrency));
  several->start(
      shard_reading::remaining_shards(reading, several->before(run), counters, std::move(input)));
  return stage::deliver(std::move(several));
}

static async_generator<sample> open_shards(const std::shared_ptr<const shard_list>& list,
                                           const open_context& run) {
  auto& options = list->options();
  auto& counters = run.add_stage("from_shards", 0);
  if (options.shuffle) run.depends_on_epoch("from_shards");
  run.progress().announce(options.shard.rank, options.shard.world);
  reading_ptr reading(new shard_reading(list, run));
  auto concurrency = run.concurrency_of_trial().value_or(options.concurrency);
  open_input input(run.run);
  return concurrency > 1 ? read_ahead(reading, run, counters, concurrency, std::move(input))
                         : read_in_turn(reading, run, counters, std::move(input));
}

}  // namespace lade::detail

namespace lade::io {

pipeline<sample> from_shards(shards which, const from_shards_options& options) {
  auto list = std::make_shared<const lade::detail::shard_list>(std::move(which), options);
  auto facts =
      lade::detail::node_facts::source("from_shards")
          .with("shards", fmt::format("{} of {}", options.shard.rank, options.shard.world));
  return lade::detail::make_pipeline<sample>(std::move(facts),
                                             [list](const lade::detail::open_context& run) {
                                               return lade::detail::open_shards(list, run);
                                             });
}

}  // namespace lade::io
