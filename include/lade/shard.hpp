// shard: each rank's part of the items.

#pragma once

#include <lade/async_generator.hpp>
#include <lade/detail/pipeline/items.hpp>
#include <lade/pipeline.hpp>

#include <concepts>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace lade {

struct shard_options {
  std::uint64_t rank = 0;
  std::uint64_t world = 1;
  lade::remainder remainder = lade::remainder::drop;
};

// The rank and world size of this process as its launcher says: torchrun (RANK, WORLD_SIZE), Open
// MPI (OMPI_COMM_WORLD_RANK, OMPI_COMM_WORLD_SIZE) or Slurm's srun (SLURM_PROCID,
// SLURM_STEP_NUM_TASKS), the first of which both are set; rank 0 of 1 without any. Throws
// error(invalid_argument) naming a variable that makes no sense, and one of torchrun or Open MPI
// that is missing beside the other.
shard_options rank_from_environment();

namespace detail {

// What a stage says that shards a stream.
node_facts shard_facts(node_ptr in, const shard_step& step);

}  // namespace detail

class shard_stage {
 public:
  explicit shard_stage(const shard_options& options);

  template <class T>
  pipeline<T> attach(const pipeline<T>& in) const {
    detail::shard_step step{options_.rank, options_.world, options_.remainder};
    if (auto ordered = in.then(step)) return *ordered;
    if (!std::copyable<T>) require_no_copies();
    return detail::make_pipeline<T>(detail::shard_facts(in.last(), step),
                                    [in, options = options_](const detail::open_context& run) {
                                      return every_world_th(in.open(run), options);
                                    });
  }

 private:
  template <class T>
  static async_generator<T> every_world_th(async_generator<T> in, shard_options options);

  // Throws error(invalid_argument) if items must be copied to make the shards even.
  void require_no_copies() const;

  shard_options options_;
};

// Keeps every world-th item, beginning with the rank-th. All ranks get the same number of items;
// where these do not divide evenly, `remainder` says how. With remainder::keep ranks may differ
// by one item: a loop that exchanges gradients in every step then has to agree on the last step.
// Of a stream, all ranks must see the same items; items are then copied to pad or wrap.
// Throws error(invalid_argument) if rank is not below world, or if items would have to be copied
// and cannot be.
inline shard_stage shard(const shard_options& options) { return shard_stage(options); }

template <class T>
async_generator<T> shard_stage::every_world_th(async_generator<T> in, shard_options options) {
  using held = detail::held_item<T>;
  std::vector<held> first;   // of the stream, for wrap
  std::optional<held> mine;  // of the present round of `world` items
  std::optional<held> last;  // for pad
  std::uint64_t seen = 0;    // of the present round
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
