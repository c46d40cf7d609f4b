#include <lade/elastic.hpp>
#include <lade/error.hpp>

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace lade {

std::size_t batch_size_of_rank(std::size_t global_batch, const shard_options& rank) {
  if (rank.world > 0 && rank.rank >= rank.world)
    throw error(errc::invalid_argument, "divide a global batch",
                fmt::format("rank is {}; it must be less than world, {}", rank.rank, rank.world));
  if (rank.world == 0 || global_batch % rank.world > 0)
    throw error(errc::invalid_argument, "divide a global batch",
                fmt::format("{} ranks do not divide a batch of {}", rank.world, global_batch));
  return global_batch / rank.world;
}

static auto find_option(const stage_description& stage, std::string_view name) {
  return std::ranges::find(stage.options, name, [](auto& option) { return option.first; });
}

static bool has_option(const stage_description& stage, std::string_view name) {
  return find_option(stage, name) != stage.options.end();
}

static const char* why_inelastic_source(const stage_description& source) {
  if (has_option(source, "shards")) return "it assigns whole shards to ranks";
  auto is_shard = [](auto& option) { return option.first == "shard"; };
  if (std::ranges::count_if(source.options, is_shard) > 1) return "it is sharded twice";
  auto shard = find_option(source, "shard");
  auto is_order = [](auto& option) { return option.first == "order"; };
  if (std::any_of(shard, source.options.end(), is_order))
    return "shard is not the last step of the source: put it behind the others";
  return nullptr;
}

static const char* why_inelastic_order(const stage_description& stage) {
  for (auto* kind : {"shuffle", "merge", "route", "route_batches"})
    if (stage.kind == kind) return "it orders the items of each rank by itself";
  if (stage.kind == "cache") return "a run with a cache has no state";
  if (has_option(stage, "completion")) return "it yields items as they finish";
  return nullptr;
}

static bool counts_items(const stage_description& stage) {
  for (auto* kind : {"shard", "take", "skip", "repeat"})
    if (stage.kind == kind) return true;
  return false;
}

static const char* why_inelastic(const stage_description& stage) {
  if (counts_items(stage))
    return "it counts the items of a stage, and a run has no state: put it at the source";
  switch (stage.cardinality) {
    case cardinality::source: return why_inelastic_source(stage);
    case cardinality::one: return why_inelastic_order(stage);
    case cardinality::at_most_one: return "it may drop items of one rank and not of others";
    case cardinality::several: return "it may yield other numbers of items on other ranks";
    case cardinality::custom: return "it is a coroutine: how it groups items is unknown";
    case cardinality::group: break;
  }
  for (auto* kind : {"batch", "batch_into", "zip", "tee"})
    if (stage.kind == kind) return nullptr;
  return "its groups depend on what is in the items, or overlap";
}

static bool is_batch(const stage_description& stage) {
  return stage.kind == "batch" || stage.kind == "batch_into";
}

// The last global batch must have the same items with any number of ranks. So shards and all
// batches must either drop incomplete remainders or keep all items.
static const char* why_inelastic_end(const pipeline_description& pipeline) {
  auto drops_last = [](auto& stage) { return has_option(stage, "drop_last"); };
  const auto batches = std::ranges::count_if(pipeline.stages, is_batch);
  const auto full = std::ranges::count_if(pipeline.stages, drops_last);
  if (batches == 0) return "it has no batch: a step would have one item of each rank";
  if (full > 0 && full < batches)
    return "some of its batches drop an incomplete last one, and others do not: choose the same "
           "for all";
  const bool full_only = full > 0;
  for (auto& stage : pipeline.stages) {
    if (!has_option(stage, "shard")) continue;
    const bool drops = !has_option(stage, "remainder");
    if (drops && !full_only)
      return "remainder::drop drops different items for different numbers of ranks: batch with "
             "drop_last, or use another remainder";
    if (!drops && full_only)
      return "a last batch may be full on some ranks only: batch without drop_last, or use "
             "remainder::drop";
  }
  return nullptr;
}

// The value of an option; empty if the stage has no such option.
static std::string_view option_of(const stage_description& stage, std::string_view name) {
  auto found = find_option(stage, name);
  return found == stage.options.end() ? std::string_view() : found->second;
}

// Two sources of a zip. remainder::pad and wrap repeat items at the end of each list. So lists of
// different sizes would be paired wrongly there.
static const char* why_inelastic_pair(const stage_description& first,
                                      const stage_description& other) {
  for (auto* option : {"shard", "remainder"})
    if (option_of(first, option) != option_of(other, option))
      return "its sources are sharded differently: zip pairs different items for different "
             "numbers of ranks";
  auto remainder = option_of(first, "remainder");
  if (remainder.empty() || remainder == "keep") return nullptr;
  auto items = option_of(first, "items");
  if (!items.empty() && items == option_of(other, "items")) return nullptr;
  return "remainder::pad and wrap repeat items of each source, and its sources have different or "
         "unknown numbers of items: use remainder::drop or keep";
}

static const char* why_inelastic_sources(const pipeline_description& pipeline) {
  const stage_description* first = nullptr;
  for (auto& stage : pipeline.stages) {
    if (stage.cardinality != cardinality::source) continue;
    if (auto* why = first ? why_inelastic_pair(*first, stage) : nullptr) return why;
    first = &stage;
  }
  return nullptr;
}

void require_elastic(const pipeline_description& pipeline) {
  for (auto& stage : pipeline.stages)
    if (auto* why = why_inelastic(stage))
      throw error(errc::invalid_argument, "require_elastic", stage.name + ": " + why);
  auto* why = why_inelastic_sources(pipeline);
  if (!why) why = why_inelastic_end(pipeline);
  if (why) throw error(errc::invalid_argument, "require_elastic", why);
}

}  // namespace lade
