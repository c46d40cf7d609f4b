// shard: yields one rank's part of the items.

#pragma once

#include <lade/async_generator.hpp>
#include <lade/detail/pipeline/items.hpp>
#include <lade/pipeline.hpp>
#include <lade/remainder.hpp>

#include <concepts>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace lade {

struct shard_options {
  std::uint64_t rank = 0;   // less than `world`
  std::uint64_t world = 1;  // number of ranks
  lade::remainder remainder = lade::remainder::drop;
};

// The rank and the world size of this process, from the environment variables of its launcher. Uses
// the first pair with both variables set:
// - torchrun: RANK, WORLD_SIZE.
// - Open MPI: OMPI_COMM_WORLD_RANK, OMPI_COMM_WORLD_SIZE.
// - Slurm's srun: SLURM_PROCID, SLURM_STEP_NUM_TASKS.
//
// Without a pair, returns rank 0 of 1. Throws error(invalid_argument) if a value is invalid, or if,
// without a pair, one variable of torchrun or Open MPI is set. The error names the variable.
shard_options rank_from_environment();

namespace detail {

// The facts of a stage that shards a stream.
node_facts shard_facts(node_ptr in, const shard_part& part);

}  // namespace detail

class shard_stage {
 public:
  explicit shard_stage(const shard_options& options);

  template <class T>
  pipeline<T> attach(const pipeline<T>& in) const {
    detail::shard_part part{options_.rank, options_.world, options_.remainder};
    if (auto ordered = in.then(detail::order_step::shard(part))) return *ordered;
    if (!std::copyable<T>) require_no_copies();
    return detail::make_pipeline<T>(detail::shard_facts(in.last(), part),
                                    [in, options = options_](const detail::open_context& run) {
                                      return every_world_th(in.open(run), options);
                                    });
  }

 private:
  template <class T>
  static async_generator<T> every_world_th(async_generator<T> in, shard_options options);

  // For items that cannot be copied: throws error(invalid_argument) if the options pad or wrap.
  void require_no_copies() const;

  shard_options options_;
};

// Yields every world-th item, starting with item number `rank`. All ranks yield the same number of
// items; `remainder` says how. The exception is remainder::keep: ranks may differ by one item, so a
// loop that exchanges gradients in every step must agree on the last step.
//
// All ranks must see the same items. To pad or wrap a stream, the stage copies items. Throws
// error(invalid_argument) if `rank` is not less than `world`, or if items must be copied and cannot
// be.
inline shard_stage shard(const shard_options& options) { return shard_stage(options); }

template <class T>
async_generator<T> shard_stage::every_world_th(async_generator<T> in, shard_options options) {
  using held = detail::held_item<T>;
  std::vector<held> first;   // copies of the first `world` items, for wrap
  std::optional<held> mine;  // this rank's item of the current round of `world` items
  std::optional<held> last;  // copy of the last item, for pad
  std::uint64_t seen = 0;    // items seen in the current round
  while (auto item = co_await in.next().apart()) {
    if constexpr (std::copyable<T>) {
      if (options.remainder == remainder::wrap && first.size() < options.world)
        first.emplace_back(*item, in.origin());
      if (options.remainder == remainder::pad) last.emplace(*item, in.origin());
    }
    if (seen == options.rank) mine.emplace(std::move(*item), in.origin());
    if (++seen < options.world) continue;
    detail::with_lineage<T> yielded{mine->origin, mine->item};
    co_yield yielded;
    mine.reset();
    seen = 0;
  }
  if (seen == 0 || options.remainder == remainder::drop) co_return;
  held* rest = mine ? &*mine : nullptr;
  if (!rest && options.remainder == remainder::keep) co_return;
  if (!rest && options.remainder == remainder::pad) rest = &*last;
  if (!rest) rest = &first[(options.rank - seen) % first.size()];
  detail::with_lineage<T> yielded{rest->origin, rest->item};
  co_yield yielded;
}

}  // namespace lade
