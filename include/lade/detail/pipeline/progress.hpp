// What a run has delivered.

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

// The positions of all sources of a run are less than this.
inline constexpr std::uint64_t most_positions = std::uint64_t{1} << 62;

// Throws error(invalid_argument) if no run can have had the state: it names a rank that its world
// does not have, or numbers beyond all positions.
void require_possible(const state& saved, std::string_view doing);

// How a source deals its items out.
struct dealing {
  std::uint64_t begin = 0;              // the position of the source's first item
  std::uint64_t items = 0;              // in the source; 0 if it does not know
  std::vector<std::string> order = {};  // what the source does with them
  std::string identity = {};            // of the data set
  std::uint64_t rank = 0;
  std::uint64_t world = 1;
  std::uint64_t first = 0;  // the position of the first item of all ranks
  std::uint64_t own = 0;    // items of this rank

  // The positions that each shard has, if the source assigns whole shards to ranks, of as many
  // items as there will be; otherwise 0. Items of a rank are then recorded by their positions, not
  // by their numbers. The last item of a shard also carries the last position of the shard.
  std::uint64_t shard_span = 0;
};

class progress;

// The digest of the names that a streaming listing has yielded, compared with that of the state
// which the run resumes from. `begin` is the position of the source's first item.
class listing_log {
 public:
  // Throws error(invalid_argument) if the state has names and the source has none.
  listing_log(progress& of, std::uint64_t begin, bool has_names);

  // Throws error(invalid_argument) if with this item the names are not those of the state.
  void add(std::string_view name);

  // Whether all is listed that the state knows; at the end of the listing it throws if it is not.
  bool is_compared() const noexcept { return count_ >= expected_; }
  void end() const;

 private:
  progress& progress_;
  const std::uint64_t begin_;
  std::uint64_t expected_ = 0;
  std::string expected_names_;
  std::uint64_t count_ = 0;
  name_digest names_;
};

// The choices of one stage of a run, by their numbers. Valid as long as the progress; keeps nothing
// where the run has no state.
class choice_log {
 public:
  choice_log(progress& of, std::size_t stage) noexcept : progress_(of), stage_(stage) {}

  // What the run goes on from. When all stages have been opened.
  const state::choices& before() const;

  // An item has been chosen, and is on its way.
  void note(std::uint64_t number, const lineage& origin);

  // There are so many to choose from.
  void note_items(std::uint64_t count);

 private:
  progress& progress_;
  std::size_t stage_;
};

// The steps that a consumer has taken of an epoch.
struct steps_before {
  std::uint64_t taken = 0;
  std::uint64_t repeated = 0;  // of these
};

// Kept by a run, from the state that it begins with on. Sources ask what to leave out, the run's
// end notes what the consumer has taken. Any thread.
class progress {
 public:
  // If a state is `required`, what refuses one throws error(invalid_argument).
  // With `other_data` the identity of data sets is not compared.
  explicit progress(std::optional<state> from, bool required = false, bool other_data = false);

  // Whether there is something to leave out.
  bool resumed() const noexcept { return from_.has_value(); }

  // The positions that nobody has to deliver any more. As long as the progress lives.
  const std::shared_ptr<const gaps>& undelivered() const noexcept { return undelivered_; }
  bool is_delivered(std::uint64_t position) const { return before_.contains(position); }

  // What the state has: the positions that no rank has to deliver any more, and with those that
  // this rank has delivered of sources that are assigned in shards.
  const lineage& delivered_by_all() const noexcept { return before_; }
  lineage delivered_here() const;

  // The numbers of this rank's own items that it had delivered, of the source that begins there.
  const lineage& own_delivered(std::uint64_t begin) const noexcept;

  // For stages and sources that keep more than lineages tell: why there is no state.
  void refuse(const std::string& why);

  // What the run consists of; throws error(invalid_argument) that names the difference to the
  // state that it goes on from. First the parts that sources give to their rank, when they are
  // opened, then the stages, then each source, when its first item is asked for.
  void announce(std::uint64_t rank, std::uint64_t world);
  void begin(std::vector<std::string> stages);
  void begin(const dealing& source);

  // For a source that has ended after `count` items, and owns `span` positions from `begin` on:
  // throws error(invalid_argument) if the state has delivered more of it than that.
  void require_length(std::uint64_t begin, std::uint64_t count, std::uint64_t span) const;

  // All stages have been opened, or will not be. now() waits for that.
  void settle() noexcept;

  // For a pipeline that makes several items of one: whether the consumer has had this part already,
  // or its item was dropped before. Called for each item that the last stage yields, in order, then
  // end() once. Both throw error(invalid_argument) if the item that the state has parts of is not
  // made again: others would come twice or not at all.
  bool is_taken(const lineage& origin);
  void end() const;
  void expect_parts();

  // For stages before those that make parts, when they are opened: one that makes its items of
  // several, and one that follows lineage_rule::consumed as far as its author says.
  void expect_groups();
  void expect_rule(std::string stage);

  // For equal_steps, when it is opened, of an epoch of so many steps: what the run goes on from.
  // Items without positions are then repeats. Throws error(invalid_argument) if the state is of
  // another number of steps.
  steps_before begin_steps(std::uint64_t count);

  // For a stage that chooses which item comes next, when it is opened. `what` tells its way of
  // choosing from others: choices of another kind are not gone on with.
  choice_log choosing(const std::string& what);

  // The consumer has taken an item.
  void note(const lineage& origin);

  // Throws error(invalid_argument) with the reason if there is no exact state. Waits until the
  // stages have been opened, which may be what the calling thread is needed for: on a thread of an
  // executor it throws instead.
  state now() const;

 private:
  // A source of this run, and what has been delivered of it on one of several ranks: numbers of the
  // rank's own items.
  struct dealt {
    dealing how;
    lineage own_delivered = {};

    // The names of the first `listed` items of a listing. Until these are as many as the state has,
    // `how.identity` and `listed` are those of the state: what is listed may be another data set.
    std::uint64_t listed = 0;
    std::optional<name_digest> names = {};
  };

  // A stage that chooses: its choices that have been delivered since the run began, and those that
  // are on their way, by the latest position of their item.
  struct chooser {
    state::choices made;
    std::map<std::uint64_t, std::uint64_t> on_their_way;
  };
  friend class choice_log;
  friend class listing_log;

  const state::choices& choices_before(std::size_t stage) const;
  std::uint64_t most_choices() const noexcept;
  void note_choices(const lineage& delivered);
  bool is_same_group(const lineage& origin) const noexcept;
  std::string why_not_again(const lineage& instead) const;
  const state::source* source_before(std::uint64_t begin) const noexcept;
  void require_same(const std::vector<std::string>& stages) const;
  void require_same(const dealing& source) const;
  void refuse_locked(const std::string& why);
  void note_locked(const lineage& origin);
  void note_whole(const lineage& origin);
  void note_range(const lineage::range& range, const lineage::range* before);
  void forget();
  bool keeps_sources_before(std::uint64_t world) const noexcept;
  std::uint64_t first_of_own(const dealing& source) const noexcept;
  std::uint64_t own_number(const dealing& source, std::uint64_t position) const noexcept;

  const std::optional<state> from_;
  const lineage before_;
  const std::shared_ptr<const gaps> undelivered_;
  const bool required_;
  const bool other_data_;
  bool amid_parts_ = false;    // parts of the open item may come that have been taken
  std::uint64_t dropped_ = 0;  // the last of these that has come
  std::atomic<bool> settled_ = false;
  std::atomic<bool> in_groups_ = false;  // a stage before the parts makes its items of several

  mutable std::mutex mutex_;  // guards what follows
  std::string refusal_;
  std::vector<std::string> stages_;
  bool begun_ = false;                      // the stages are those of the state, if there is one
  std::map<std::uint64_t, dealt> sources_;  // by their first positions
  std::vector<chooser> choosers_;
  std::optional<std::pair<std::uint64_t, std::uint64_t>> part_;  // rank and world, of all sources
  lineage delivered_;  // positions, if this is the only rank
  lineage own_;        // positions of sources that are assigned in shards, if it is not
  lineage open_;
  bool in_parts_ = false;
  std::vector<std::string> consuming_;  // names of custom stages before parts are made
  std::uint64_t parts_ = 0;
  std::uint64_t open_size_ = 0;
  std::uint64_t steps_ = 0;  // of the epoch, with equal_steps; 0 without
  steps_before steps_taken_;
};

}  // namespace lade::detail
