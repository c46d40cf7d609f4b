#include <lade/error.hpp>
#include <lade/shard.hpp>

#include <charconv>
#include <cstdlib>
#include <string>
#include <string_view>

#include <fmt/format.h>

namespace lade {

static std::uint64_t number_in(const char* variable) {
  std::string_view text = std::getenv(variable);
  std::uint64_t value = 0;
  auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc() || end != text.data() + text.size())
    throw error(errc::invalid_argument, "read " + std::string(variable),
                "not a number: " + std::string(text));
  return value;
}

static shard_options rank_in(const char* rank, const char* world) {
  shard_options options{.rank = number_in(rank), .world = number_in(world)};
  if (options.rank >= options.world)
    throw error(errc::invalid_argument, fmt::format("read {} and {}", rank, world),
                fmt::format("rank {} of {}", options.rank, options.world));
  return options;
}

static void require_both_or_none(const char* rank, const char* world) {
  if (!std::getenv(rank) == !std::getenv(world)) return;
  auto missing = std::getenv(rank) ? world : rank;
  throw error(errc::invalid_argument, fmt::format("read {} and {}", rank, world),
              std::string(missing) + " is not set");
}

// This rank's item of the round, and the copies kept for an incomplete last round.
static std::uint64_t held_by_shard(const detail::shard_part& part) {
  if (part.remainder == remainder::wrap) return std::max(part.world, part.world + 1);
  return part.remainder == remainder::pad ? 2 : 1;
}

detail::node_facts detail::shard_facts(node_ptr in, const shard_part& part) {
  auto size = size_behind({order_step::shard(part)}, in->facts().size());
  auto facts = node_facts::behind(std::move(in), "shard")
                   .uncounted()
                   .holding(held_by_shard(part))
                   .with("rank", part.rank)
                   .with("world", part.world)
                   .refusing_state("shard counts the items of a stage: put it at the source")
                   .yielding(cardinality::at_most_one, size);
  if (part.world == 1 || part.remainder == remainder::drop) return facts;
  return std::move(facts).with("remainder", remainder_name(part.remainder));
}

shard_options rank_from_environment() {
  struct launcher {
    const char* rank;
    const char* world;
    bool sets_both;  // Slurm sets one variable alone in a batch script outside srun
  };
  constexpr launcher launchers[] = {{"RANK", "WORLD_SIZE", true},
                                    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", true},
                                    {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", false}};
  for (auto& each : launchers)
    if (std::getenv(each.rank) && std::getenv(each.world)) return rank_in(each.rank, each.world);
  for (auto& each : launchers)
    if (each.sets_both) require_both_or_none(each.rank, each.world);
  return {};
}

void shard_stage::require_no_copies() const {
  if (options_.remainder == remainder::pad || options_.remainder == remainder::wrap)
    throw error(errc::invalid_argument, "shard",
                "items that cannot be copied can be neither padded nor wrapped");
}

shard_stage::shard_stage(const shard_options& options) : options_(options) {
  if (options.rank >= options.world)
    throw error(errc::invalid_argument, "shard",
                fmt::format("rank {} of {}", options.rank, options.world));
  if (options.remainder > remainder::keep)
    throw error(errc::invalid_argument, "shard", "a value of remainder that does not exist");
}

}  // namespace lade
