// progress: the record of a run's deliveries, from which states (checkpoints) are made.

#pragma once

#include <lade/detail/pipeline/index.hpp>
#include <lade/lineage.hpp>
#include <lade/state.hpp>

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lade::detail {

// All positions of the sources of a run are less than this.
inline constexpr std::uint64_t most_positions = std::uint64_t{1} << 62;

// Throws error(invalid_argument) if no run can have made the state: its rank is not in its world,
// or its numbers exceed all positions.
void require_possible(const state& saved, std::string_view doing);

// How a source assigns its items to ranks.
struct assignment {
  std::uint64_t begin = 0;              // position of the source's first item
  std::uint64_t items = 0;              // number of items in the source; 0 if unknown
  std::vector<std::string> order = {};  // order steps of the source
  std::string identity = {};            // identity of the data set
  std::uint64_t rank = 0;
  std::uint64_t world = 1;
  std::uint64_t first = 0;  // position of the first item of all ranks
  std::uint64_t own = 0;    // number of items of this rank

  // If the source assigns whole shards to ranks: the number of positions of each shard, used or
  // not; otherwise 0. The items of a rank are then recorded by position, not by number. The last
  // item of a shard also carries the last position of the shard.
  std::uint64_t shard_span = 0;
};

class progress;

// The digest of the names that a streaming listing has yielded. It is compared with the digest in
// the state from which the run resumes. `begin`: the position of the source's first item.
class listing_log {
 public:
  // Throws error(invalid_argument) if the state has names and the source has none.
  listing_log(progress& of, std::uint64_t begin, bool has_names);

  // Throws error(invalid_argument) if the names up to this item differ from those of the state.
  void add(std::string_view name);

  // Whether all names of the state have been compared. end(): at the end of the listing, throws if
  // not.
  bool is_compared() const noexcept { return count_ >= expected_; }
  void end() const;

 private:
  progress& progress_;
  const std::uint64_t begin_;
  std::uint64_t expected_ = 0;
  std::string expected_names_;
  std::uint64_t count_ = 0;
  support::name_digest names_;
};

// The choices of one stage of a run, by number. Valid as long as the progress. Keeps nothing if the
// run has no state.
class choice_log {
 public:
  choice_log(progress& of, std::size_t stage) noexcept : progress_(of), stage_(stage) {}

  // The choices in the state from which the run resumes. Requires that all stages have been opened.
  const state::choices& before() const;

  // Records that an item was chosen and is in flight.
  void note(std::uint64_t number, const lineage& origin);

  // Records the number of items to choose from.
  void record_items(std::uint64_t count);

 private:
  progress& progress_;
  std::size_t stage_;
};

// The steps of an epoch that a consumer has taken.
struct steps_before {
  std::uint64_t taken = 0;
  std::uint64_t repeated = 0;  // of the steps taken
};

// The deliveries of a run, including those of the state from which it resumes. Sources ask which
// positions to skip, and the run records the items that its consumer takes.
//
// Thread: any. mutex_ guards the members below it; is_taken() and end() are called by one
// coroutine, which alone accesses amid_parts_ and dropped_.
class progress {
 public:
  // `required`: a stage that refuses a state throws error(invalid_argument). `other_data`:
  // identities of data sets are not compared.
  explicit progress(std::optional<state> from, bool required = false, bool other_data = false);

  // Whether the run resumes from a state, so that there are items to skip.
  bool resumed() const noexcept { return from_.has_value(); }

  // The positions that no rank must deliver any more, as gaps. Valid as long as the progress.
  const std::shared_ptr<const gaps>& undelivered() const noexcept { return undelivered_; }
  bool is_delivered(std::uint64_t position) const { return before_.contains(position); }

  // From the state: the positions that no rank must deliver any more; delivered_here() adds
  // positions that this rank has delivered of sources that assign whole shards.
  const lineage& delivered_by_all() const noexcept { return before_; }
  lineage delivered_here() const;

  // The numbers of this rank's items that the state has as delivered, of the source at `begin`.
  const lineage& own_delivered(std::uint64_t begin) const noexcept;

  // Records that there is no state, with the reason: something depends on more than lineages.
  void refuse(const std::string& why);

  // Describe the run. Each throws error(invalid_argument) naming the difference to the state from
  // which the run resumes. Called in this order: announce() by each source, when it is opened;
  // begin(stages) for all stages; begin(source) by each source, when its first item is requested.
  void announce(std::uint64_t rank, std::uint64_t world);
  void begin(std::vector<std::string> stages);
  void begin(const assignment& source);

  // For a source that has ended after `count` items and owns `span` positions from `begin`. Throws
  // error(invalid_argument) if the state has delivered more of it.
  void require_length(std::uint64_t begin, std::uint64_t count, std::uint64_t span) const;

  // Reports that all stages have been opened, or will not be. now() waits for this.
  void settle() noexcept;

  // For a pipeline with parts. is_taken(): whether to drop this part, because the consumer had it
  // before or its item was dropped before. Called in order for each item that the last stage
  // yields; then end() is called once.
  //
  // Both throw error(invalid_argument) if the item that was partly delivered is not made again.
  // Other parts would then be delivered twice or not at all.
  bool is_taken(const lineage& origin);
  void end() const;
  void expect_parts();

  // For stages before a stage that makes parts, when they are opened. expect_groups(): the stage
  // makes its items of several. expect_rule(): it follows lineage_rule::consumed, as its author
  // claims.
  void expect_groups();
  void expect_rule(std::string stage);

  // For equal_steps, when it is opened: an epoch has `count` steps. Returns the steps of the state
  // from which the run resumes. Items without positions then count as repeats. Throws
  // error(invalid_argument) if the state has another number of steps.
  steps_before begin_steps(std::uint64_t count);

  // For a stage that chooses the next item, when it is opened. `what`: its way of choosing. Choices
  // of the state that were made in another way are not continued.
  choice_log choosing(const std::string& what);

  // Records that the consumer has taken an item.
  void note(const lineage& origin);

  // Returns the state (a checkpoint). Throws error(invalid_argument) with the reason if there is no
  // exact one. Blocks until the stages have been opened. On a thread of an executor it throws
  // instead, since the opening may need that thread.
  state now() const;

 private:
  // A source of this run, and, if there are several ranks, the numbers of this rank's items that
  // were delivered.
  struct assigned_source {
    assignment how;
    lineage own_delivered = {};

    // The names of the first `listed` items of a listing. While they are fewer than in the state,
    // `how.identity` and `listed` are copied from the state: the listing may be another data set.
    std::uint64_t listed = 0;
    std::optional<support::name_digest> names = {};
  };

  // A stage that chooses: its choices delivered since the run began, and its choices in flight, by
  // the latest position of their item.
  struct chooser {
    state::choices made;
    std::map<std::uint64_t, std::uint64_t> on_their_way;
  };
  friend class choice_log;
  friend class listing_log;

  const state::choices& choices_before(std::size_t stage) const;
  std::uint64_t most_choices() const noexcept;
  void record_choices(const lineage& delivered);
  bool is_same_group(const lineage& origin) const noexcept;
  std::string why_not_again(const lineage& instead) const;
  const state::source* source_before(std::uint64_t begin) const noexcept;
  void require_same(const std::vector<std::string>& stages) const;
  void require_same(const assignment& source) const;
  void refuse_locked(const std::string& why);
  void record_locked(const lineage& origin);
  void record_whole(const lineage& origin);
  void record_range(const lineage::range& range, const lineage::range* before);
  void forget();
  bool keeps_sources_before(std::uint64_t world) const noexcept;
  std::uint64_t first_of_own(const assignment& source) const noexcept;
  std::uint64_t own_number(const assignment& source, std::uint64_t position) const noexcept;

  const std::optional<state> from_;
  const lineage before_;
  const std::shared_ptr<const gaps> undelivered_;
  const bool required_;
  const bool other_data_;
  bool amid_parts_ = false;    // taken parts of the open item may still be made again
  std::uint64_t dropped_ = 0;  // the last part that was dropped
  std::atomic<bool> settled_ = false;
  std::atomic<bool> in_groups_ = false;  // a stage before the parts makes its items of several

  mutable std::mutex mutex_;  // guards the members below
  std::string refusal_;
  std::vector<std::string> stages_;
  bool begun_ = false;  // the stages match those of the state, if there is one
  std::map<std::uint64_t, assigned_source> sources_;  // by first position
  std::vector<chooser> choosers_;
  std::optional<std::pair<std::uint64_t, std::uint64_t>> part_;  // rank and world of all sources
  lineage delivered_;  // positions, if this is the only rank
  lineage own_;        // otherwise: positions of sources that assign whole shards
  lineage open_;
  bool in_parts_ = false;
  std::vector<std::string> consuming_;  // names of custom stages before a stage that makes parts
  std::uint64_t parts_ = 0;
  std::uint64_t open_members_ = 0;
  std::uint64_t steps_ = 0;  // steps of the epoch with equal_steps; 0 without
  steps_before steps_taken_;
};

}  // namespace lade::detail
