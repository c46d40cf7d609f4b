// from_shards: a source that streams the items of shards. Its checkpoints are exact behind every
// stage.

#pragma once

#include <lade/async_generator.hpp>
#include <lade/detail/common/counted.hpp>
#include <lade/detail/coroutines/owner.hpp>
#include <lade/detail/pipeline/index.hpp>
#include <lade/detail/pipeline/items.hpp>
#include <lade/detail/pipeline/node.hpp>
#include <lade/detail/pipeline/progress.hpp>
#include <lade/detail/pipeline/run_state.hpp>
#include <lade/detail/stages/concurrent_flat_map.hpp>
#include <lade/failure.hpp>
#include <lade/flat_map.hpp>
#include <lade/from.hpp>
#include <lade/held.hpp>
#include <lade/lineage.hpp>
#include <lade/pipeline.hpp>
#include <lade/shard.hpp>
#include <lade/this_context.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace lade {

// A class of shards: numbered sequences of items, such as the archives of a data set.
//
//   class logs {
//    public:
//     std::uint64_t size() const;                               // number of shards; never changes
//     std::string name(std::uint64_t i) const;                  // name of shard i, for errors
//     std::string identity() const;                             // of all shards
//     lade::async_generator<record> read(std::uint64_t i) const;  // the items of shard i
//   };
//
// - Identity: equal for equal shards in equal order, in every process. A run refuses to resume from
//   a state with another identity. If it is empty, states compare only the assignment to ranks and,
//   if shards are shuffled, their number.
// - read() yields the same items in the same order in every run. Its generator may await.
// - Threads: all are called as const, on threads of the CPU pool, by several at a time;
//   from_shards() itself calls size() on its caller's thread. Only the generator may block.
template <class S>
concept shard_source = requires(const S& shards, std::uint64_t i) {
  { shards.size() } -> std::convertible_to<std::uint64_t>;
  { shards.name(i) } -> std::convertible_to<std::string>;
  { shards.identity() } -> std::convertible_to<std::string>;
  typename detail::generated<decltype(shards.read(i))>::type;
};

struct from_shards_options {
  std::string_view name = "from_shards";  // name in statistics and errors

  bool shuffle = false;    // whether each epoch has another order of shards
  std::uint64_t seed = 0;  // seed of the shuffle

  // The assignment of shards to ranks: this rank reads the shards at rank, rank + world, ... of the
  // order. `remainder` is not used. Ranks have different numbers of items.
  shard_options shard = {};

  // Number of open shards, 1 to 1,048,576. With 1, shards are read on the thread of the next stage.
  // With more, a coroutine on the CPU pool reads each shard ahead of its turn, by up to `buffer`
  // items (at most 1,048,576; 0 counts as 1) and two more. The order of the items is the same, and
  // so are the checkpoints. `automatic` is refused.
  unsigned concurrency = 1;
  std::size_t buffer = 16;

  // The policy for shards that fail; the policy of the run if not set. Items before the failure are
  // delivered.
  std::optional<lade::on_error> on_error = {};
};

namespace detail {

// The shards of a source, without the type of their items.
class shard_list : public counted {
 public:
  virtual std::uint64_t size() const = 0;
  virtual std::string name(std::uint64_t shard) const = 0;
  virtual std::string identity() const = 0;
};

// The same with the items.
template <class T>
class shard_reader : public shard_list {
 public:
  virtual async_generator<T> read(std::uint64_t shard) const = 0;
};

template <shard_source S, class T>
class shard_reader_of final : public shard_reader<T> {
 public:
  explicit shard_reader_of(S shards) : shards_(std::move(shards)) {}
  std::uint64_t size() const override { return static_cast<std::uint64_t>(shards_.size()); }
  std::string name(std::uint64_t shard) const override { return shards_.name(shard); }
  std::string identity() const override { return shards_.identity(); }
  async_generator<T> read(std::uint64_t shard) const override { return shards_.read(shard); }

 private:
  S shards_;
};

// The options of a source, checked.
class sharded_options {
 public:
  // Throws error(invalid_argument) as from_shards does.
  sharded_options(const from_shards_options& given, std::uint64_t shards);

  node_facts facts() const;
  flat_map_options ahead() const {
    return {.concurrency = given_.concurrency, .buffer = given_.buffer};
  }
  failure_policy policy() const { return {.finally = given_.on_error}; }
  const from_shards_options& operator*() const noexcept { return given_; }
  const from_shards_options* operator->() const noexcept { return &given_; }
  const std::string& name() const noexcept { return name_; }

 private:
  std::uint64_t most_held() const;

  from_shards_options given_;  // without the name
  std::string name_;
};

// The positions of a shard: one for each of its items, and the last position, which is delivered
// with the last item. The positions of the next shard in the order follow, so that delivered
// positions are few ranges.
class shard_positions {
 public:
  static constexpr std::uint64_t span = std::uint64_t{1} << 32;

  // Throws error(limit_exceeded) if the positions belong to another source.
  shard_positions(std::uint64_t place, const open_context& run);

  std::uint64_t first() const noexcept { return first_; }
  std::uint64_t last() const noexcept { return first_ + span - 1; }

  // Returns the position of the next item. Throws error(limit_exceeded) for too many items.
  std::uint64_t next();

  // Whether `position` is that of the latest item.
  bool is_latest(std::uint64_t position) const noexcept { return position + 1 == first_ + used_; }

 private:
  std::uint64_t first_;
  std::uint64_t used_ = 0;
};

// The positions of a state that are delivered.
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

// A shard that a run reads next.
struct listed_shard {
  std::uint64_t place;   // in the order of the run
  std::uint64_t number;  // in the source
  std::string name;

  const std::string& key() const noexcept { return name; }
};

// The shards of one run.
class shards_of_run : public counted {
 public:
  shards_of_run(counted_ptr<const shard_list> list, sharded_options options,
                const open_context& run);

  // Yields the shards of this rank that are not delivered, in their order. Shards that no rank has
  // completed are assigned to ranks in turn.
  static async_generator<listed_shard> remaining(counted_ptr<const shards_of_run> self,
                                                 open_context run, stage_counters& counters,
                                                 open_input input);

  // Whether a position of this rank is delivered already or must be skipped.
  bool leaves_out(std::uint64_t position, const open_context& run) const {
    return here_.contains(position) || run.leaves_out(position);
  }

  // Throws the failure of a shard, unless the policy skips the shard.
  void pass(std::exception_ptr failure, const listed_shard& shard, const open_context& run,
            stage_counters& counters) const;

 private:
  assignment sharding_in(const open_context& run) const;
  std::uint64_t shard_at(std::uint64_t place, std::uint64_t round) const;

  const counted_ptr<const shard_list> list_;
  const sharded_options options_;
  delivered_positions by_all_;  // of all ranks
  delivered_positions here_;    // of all ranks, and of this rank
};

// The shards of one run, with their items: the stage of a concurrent_flat_map.
template <class T>
class shard_reading final : public shards_of_run {
 public:
  shard_reading(counted_ptr<const shard_reader<T>> shards, const sharded_options& options,
                const open_context& run)
      : shards_of_run(shards, options, run), shards_(std::move(shards)), ahead_(options.ahead()) {}

  const flat_map_options& options() const noexcept { return ahead_; }

  // Yields the items of a shard that are not delivered, up to a failure that the policy skips. The
  // caller counts them. Runs in the context of the caller, with which it is stopped. Holds one item
  // back until it is known whether it is the last.
  async_generator<T> parts(listed_shard shard, const kept_name<listed_shard>&, lineage,
                           open_context run, stage_counters& counters) const {
    if (run.run->failures().is_behind()) co_await run.run->failures().caught_up();
    auto& current = co_await this_context_reference();
    run = run.until(current.stop);
    shard_positions positions(shard.place, run);
    held<int> end(0, lineage(positions.last()));
    std::exception_ptr failure;
    auto items = remaining_items(shard, run, counters, positions);
    auto waiting = co_await items.next().deferring(failure).held();
    while (waiting) {
      auto next = co_await items.next().deferring(failure).held();
      bool is_over = !next && !failure;
      if (is_over && positions.is_latest(waiting->origin().latest())) waiting->join(end);
      co_yield std::move(*waiting);
      waiting = std::move(next);
    }
    if (failure) this->pass(failure, shard, run, counters);
  }

 private:
  // Yields the items with their positions, which it takes from `positions`.
  async_generator<T> remaining_items(const listed_shard& shard, const open_context& run,
                                     stage_counters& counters, shard_positions& positions) const {
    auto items = shards_->read(shard.number);
    while (auto* next = co_await items.next()) {
      run.throw_if_stopped(counters);
      auto position = positions.next();
      if (this->leaves_out(position, run)) continue;
      positioned<T> yielded{position, *next};
      co_yield yielded;
    }
  }

  counted_ptr<const shard_reader<T>> shards_;
  flat_map_options ahead_;
};

// The node of the source.
template <class T>
class sharded_source final : public node<T> {
 public:
  sharded_source(counted_ptr<const shard_reader<T>> shards, sharded_options options)
      : node<T>(options.facts()), shards_(std::move(shards)), options_(std::move(options)) {}

  async_generator<T> open(const open_context& run) const override {
    auto& counters = run.add_stage(0);
    if (options_->shuffle) run.depends_on_epoch(options_.name());
    run.progress().announce(options_->shard.rank, options_->shard.world);
    counted_ptr<const shard_reading<T>> reading(new shard_reading<T>(shards_, options_, run));
    auto concurrency = run.concurrency_of_trial().value_or(options_->concurrency);
    open_input input(run.run);
    return concurrency > 1 ? read_ahead(reading, run, counters, concurrency, std::move(input))
                           : read_in_turn(reading, run, counters, std::move(input));
  }

 private:
  using reading_ptr = counted_ptr<const shard_reading<T>>;

  static async_generator<T> read_in_turn(reading_ptr reading, open_context run,
                                         stage_counters& counters, open_input input) {
    auto shards = shards_of_run::remaining(reading, run, counters, std::move(input));
    kept_name<listed_shard> name;
    while (auto* shard = co_await shards.next()) {
      increment(counters.in);
      auto items = reading->parts(*shard, name, lineage(), run, counters);
      while (auto* next = co_await items.next()) {
        count_out(counters, *next);
        co_yield *next;
      }
    }
  }

  static async_generator<T> read_ahead(const reading_ptr& reading, const open_context& run,
                                       stage_counters& counters, unsigned concurrency,
                                       open_input input) {
    using stage = concurrent_flat_map<listed_shard, T, shard_reading<T>>;
    owner several(std::make_shared<stage>(run, counters, reading, concurrency));
    several->start(
        shards_of_run::remaining(reading, several->before(run), counters, std::move(input)));
    return stage::deliver(std::move(several));
  }

  counted_ptr<const shard_reader<T>> shards_;
  sharded_options options_;
};

}  // namespace detail

// Returns a source of the items of shards, one shard after the other:
//
//   lade::from_shards(logs("2026-*.log"), {.shuffle = true, .seed = 7, .concurrency = 4}) |
//       lade::shuffle({.seed = 8, .window = 4096}) | lade::map(decode, {.concurrency = 8})
//
// Unlike items of a flat_map, each item has a position: its shard and its number in the shard. So a
// run has a checkpoint also behind a window shuffle and batches.
//
// An item is delivered when the next one of its shard has been read, so that the last item of a
// shard is known.
//
// A resumed run skips the shards that were delivered completely, without reading them, unless they
// have no items. It reads the other shards from their beginning, and they must yield the same
// items. A shard that failed and was skipped is read again; items beyond the delivered ones are
// delivered then.
//
// The checkpoints of all ranks can be merged (lade::merge), and any number of ranks can resume from
// the result. All shards that are not complete are assigned again, in the same order. The new rank
// of a partly read shard continues it. If fewer shards than ranks are left, some ranks have no
// items.
//
// A larger concurrency hides the latency of opening a shard. The order is still one shard after the
// other. So it neither adds the rates of several connections nor mixes the shards. For both, merge
// sources that have different shards and read ahead.
//
// Memory: while the budget is exhausted, shards that are read ahead wait for memory. The shard
// whose turn it is exceeds the limit, so they cannot block it.
//
// Throws error(invalid_argument) for options out of range, and for fewer shards than ranks.
template <shard_source S>
auto from_shards(S shards, const from_shards_options& options = {}) {
  using item = typename detail::generated<decltype(std::as_const(shards).read(0))>::type;
  detail::sharded_options checked(options, static_cast<std::uint64_t>(shards.size()));
  detail::counted_ptr<const detail::shard_reader<item>> reader(
      new detail::shard_reader_of<S, item>(std::move(shards)));
  return pipeline<item>(
      detail::counted_ptr(new detail::sharded_source<item>(std::move(reader), std::move(checked))));
}
template <class S>
  requires(!shard_source<S>)
void from_shards(const S&, const from_shards_options& = {}) {
  static_assert(shard_source<S>,
                "lade::from_shards: a class of shards has size(), name(index), identity() and "
                "read(index), which returns an async_generator, and all are callable as const");
}

}  // namespace lade
