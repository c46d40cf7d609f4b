#include <lade/detail/index.hpp>
#include <lade/detail/items.hpp>
#include <lade/detail/run_state.hpp>
#include <lade/error.hpp>
#include <lade/from.hpp>
#include <lade/io/formats/from_shards.hpp>
#include <lade/random.hpp>

#include <exception>
#include <memory>
#include <string>
#include <utility>

namespace lade::detail {

// What a source of shards has been told.
class shard_stream {
 public:
  shard_stream(io::shards which, const io::from_shards_options& options)
      : which_(std::move(which)), options_(options), read_(io::read_tar.with(options.read)) {
    auto [rank, world, ignored] = options.shard;
    if (rank >= world || which_.names().size() < world)
      throw error(errc::invalid_argument, "from_shards",
                  "rank " + std::to_string(rank) + " of " + std::to_string(world) + " for " +
                      std::to_string(which_.names().size()) + " shards");
    options_.read = {};  // its views may die
    name_digest names;
    for (const auto& name : which_.names()) names.add(which_.identity_of(sample(name)));
    identity_ = names.text();
  }

  // How many shards this rank reads, and which is the i-th.
  std::uint64_t size() const noexcept {
    auto [rank, world, ignored] = options_.shard;
    return (which_.names().size() - rank + world - 1) / world;
  }
  std::uint64_t at(std::uint64_t i, std::uint64_t round) const {
    auto place = options_.shard.rank + i * options_.shard.world;
    if (!options_.shuffle) return place;
    return permute(place, which_.names().size(), random(options_.seed, round)());
  }

  const std::string& name(std::uint64_t shard) const { return which_.names()[shard]; }
  async_generator<sample> read(std::uint64_t shard) const { return read_(sample(name(shard))); }
  failure_policy policy() const { return {.finally = options_.on_error}; }
  bool is_shuffled() const noexcept { return options_.shuffle; }

  dealing how_dealt(const opening& run) const {
    auto [rank, world, ignored] = options_.shard;
    auto order = options_.shuffle ? "shards shuffled by " + std::to_string(options_.seed)
                                  : std::string("shards in their order");
    auto part = "rank " + std::to_string(rank) + " of " + std::to_string(world);
    return {
        .begin = run.first, .order = {std::move(order), std::move(part)}, .identity = identity_};
  }

 private:
  io::shards which_;
  io::from_shards_options options_;
  read_tar read_;
  std::string identity_;
};

// The positions of a shard: its samples', and one of those behind them, which is delivered with the
// last sample and tells how many there are.
class shard_positions {
 public:
  shard_positions(std::uint64_t shard, const opening& run) : first_(run.first + shard * 2 * most) {
    require_own_position((shard + 1) * 2 * most - 1, run);
  }

  std::uint64_t first() const noexcept { return first_; }

  // That of the next sample.
  std::uint64_t next() {
    if (used_ + 1 == most)
      throw error(errc::limit_exceeded, "number a sample", "its shard has too many");
    return first_ + used_++;
  }

  std::uint64_t end() const noexcept { return end_of(used_); }

  // Whether as many samples have been delivered as there are.
  bool are_delivered(const progress& before) const {
    const auto& undelivered = *before.undelivered();
    auto left = undelivered.before(first_ + most) - undelivered.before(first_);
    return before.is_delivered(end_of(most - left));
  }

 private:
  static constexpr std::uint64_t most = std::uint64_t{1} << 31;

  std::uint64_t end_of(std::uint64_t samples) const noexcept { return first_ + most + samples; }

  std::uint64_t first_;
  std::uint64_t used_ = 0;
};

// The samples of one shard that have not been delivered. One is held back until it is known whether
// it is the last.
static async_generator<sample> read_shard(std::shared_ptr<const shard_stream> what,
                                          std::uint64_t shard, opening run,
                                          stage_counters& counters) {
  shard_positions positions(shard, run);
  auto samples = what->read(shard);
  std::optional<held<sample>> waiting;
  std::exception_ptr failure;
  bool ended = false;
  while (!ended && !failure) {
    sample* next = nullptr;
    lineage origin;
    try {
      next = co_await samples.next();
      run.throw_if_stopped(counters);
      if (next) origin = lineage(positions.next());
    } catch (...) {
      failure = std::current_exception();
      next = nullptr;
    }
    ended = !next;
    if (next && run.leaves_out(origin.latest())) continue;
    if (waiting) {
      if (ended && !failure) {
        auto last = std::move(**waiting);
        auto to_the_end = waiting->origin();
        to_the_end.add(positions.end());
        waiting.emplace(std::move(last), std::move(to_the_end));
      }
      count_out(counters, **waiting);
      co_yield std::move(*waiting);
      waiting.reset();
    }
    if (next) waiting.emplace(std::move(*next), std::move(origin));
  }
  if (failure) std::rethrow_exception(failure);
}

static async_generator<sample> read_shards(std::shared_ptr<const shard_stream> what, opening run,
                                           stage_counters& counters, open_input input) {
  try {
    run.run->progress().begin(what->how_dealt(run));
  } catch (...) {
    std::rethrow_exception(run.failure(counters, {on_error::fail}, {}, {}));
  }
  for (std::uint64_t i = 0; i < what->size(); ++i) {
    if (run.run->is_behind_with_failures()) co_await run.run->room_for_failures();
    auto shard = what->at(i, run.round());
    shard_positions positions(shard, run);
    if (positions.are_delivered(run.run->progress())) continue;
    auto samples = read_shard(what, shard, run, counters);
    while (true) {
      std::optional<held<sample>> next;
      std::exception_ptr failure;
      try {
        next = co_await samples.next().held();
      } catch (...) {
        failure =
            run.failure(counters, what->policy(), what->name(shard), lineage(positions.first()));
      }
      if (failure) std::rethrow_exception(failure);
      if (!next) break;
      co_yield std::move(*next);
    }
  }
  input.end();
}

}  // namespace lade::detail

namespace lade::io {

pipeline<sample> from_shards(shards which, const from_shards_options& options) {
  auto what = std::make_shared<const lade::detail::shard_stream>(std::move(which), options);
  return lade::detail::make_pipeline<sample>(1, [what](const lade::detail::opening& run) {
    auto& counters = run.add_stage("from_shards", 0);
    if (what->is_shuffled()) run.depends_on_epoch("from_shards");
    run.begin_source(0, 1);
    return lade::detail::read_shards(what, run, counters, lade::detail::open_input(run.run));
  });
}

}  // namespace lade::io
