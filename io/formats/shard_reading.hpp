// What a source of shards reads, and how its samples are numbered.

#pragma once

#include <lade/async_generator.hpp>
#include <lade/detail/common/counted.hpp>
#include <lade/detail/pipeline/index.hpp>
#include <lade/detail/pipeline/items.hpp>
#include <lade/detail/pipeline/run_state.hpp>
#include <lade/flat_map.hpp>
#include <lade/from.hpp>
#include <lade/io/formats/from_shards.hpp>
#include <lade/io/formats/webdataset.hpp>
#include <lade/lineage.hpp>
#include <lade/sample.hpp>

#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <utility>

namespace lade::detail {

// The shards of a source, in the order of a run, and its options.
class shard_list {
 public:
  // Throws error(invalid_argument) as from_shards does.
  shard_list(io::shards shards, const io::from_shards_options& options);

  std::uint64_t size() const noexcept { return shards_.names().size(); }

  // The name of the shard at a place of the order. `round`: see open_context::round.
  const std::string& at(std::uint64_t position, std::uint64_t round) const;

  async_generator<sample> read(const std::string& shard) const { return read_(sample(shard)); }

  const io::from_shards_options& options() const noexcept { return options_; }
  failure_policy policy() const { return {.finally = options_.on_error}; }
  dealing sharding_in(const open_context& run) const;

 private:
  io::shards shards_;
  io::from_shards_options options_;
  read_tar read_;
  std::string identity_;
};

// The positions of a shard: those of its samples, and the last, which is delivered with the last
// sample. They follow those of the shard before in the order, so that what has been delivered are
// few ranges.
class shard_positions {
 public:
  static constexpr std::uint64_t span = std::uint64_t{1} << 32;

  // Throws error(limit_exceeded) if they are those of another source.
  shard_positions(std::uint64_t place, const open_context& run)
      : first_(run.pass->first + place * span) {
    require_own_position((place + 1) * span - 1, run);
  }

  std::uint64_t first() const noexcept { return first_; }
  std::uint64_t last() const noexcept { return first_ + span - 1; }

  // That of the next sample. Throws error(limit_exceeded) for too many.
  std::uint64_t next();

  // Whether it is that of the sample before.
  bool is_latest(std::uint64_t position) const noexcept { return position + 1 == first_ + used_; }

 private:
  std::uint64_t first_;
  std::uint64_t used_ = 0;
};

// Positions that have been delivered.
class delivered_positions {
 public:
  explicit delivered_positions(lineage all) : all_(std::move(all)), gaps_(all_) {}

  bool contains(std::uint64_t position) const noexcept { return all_.contains(position); }
  bool contains(const shard_positions& shard) const noexcept {
    return gaps_.before(shard.first()) == gaps_.before(shard.last() + 1);
  }

 private:
  lineage all_;
  gaps gaps_;
};

// A shard that is about to be read.
struct listed_shard {
  std::uint64_t position;   // in the order
  const std::string* name;  // lives as long as the list

  const std::string& key() const noexcept { return *name; }
};

// The shards that one run reads. As a concurrent_flat_map, it reads several of them at a time.
class shard_reading final : public counted {
 public:
  shard_reading(std::shared_ptr<const shard_list> list, const open_context& run);

  const flat_map_options& options() const noexcept { return ahead_; }

  // The shards of this rank that have not been delivered, in their order. Those that no rank has
  // completed are assigned to ranks in turn.
  static async_generator<listed_shard> remaining_shards(counted_ptr<const shard_reading> self,
                                                        open_context run, stage_counters& counters,
                                                        open_input input);

  // The samples of a shard that have not been delivered, up to a failure that the policy passes.
  // What `counters` count is for the caller.
  async_generator<sample> parts(listed_shard shard, const kept_name<listed_shard>& name,
                                lineage origin, open_context run, stage_counters& counters) const;

 private:
  // The samples with their positions, which are counted in `positions`.
  async_generator<sample> remaining_samples(listed_shard shard, open_context run,
                                            stage_counters& counters,
                                            shard_positions& positions) const;

  // Throws a failure unless the policy passes it.
  void pass(std::exception_ptr failure, const listed_shard& shard, const open_context& run,
            stage_counters& counters) const;

  std::shared_ptr<const shard_list> list_;
  flat_map_options ahead_;
  delivered_positions by_all_;
  delivered_positions here_;  // by all ranks, and by this one
};

}  // namespace lade::detail
